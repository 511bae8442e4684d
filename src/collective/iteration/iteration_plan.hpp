#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "base/listed_enum.hpp"
#include "plan/plan.hpp"
#include "plan/steps/collective.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::scenario {
class PieceTimes;
}

namespace longhaul::collective {

/// What is communicated for: tensor parallelism, sharded weights and their gradients, sums over
/// copies of the weights, activations and gradients between stages.
#define LONGHAUL_TRAFFICS(X) X(tp, "tp") X(fsdp, "fsdp") X(dp, "dp") X(pp, "pp")
LONGHAUL_LISTED_ENUM(Traffic, LONGHAUL_TRAFFICS);

enum class OperationId : std::uint32_t {};
enum class CommunicationId : std::uint32_t {};

/// An operator of a block, or a piece of it, as the ranks of a stage compute it.
struct Operation {
  std::uint32_t position = 0;     ///< of its operator in the compute lanes of IterationPlan::base
  std::uint32_t block = 0;        ///< position of the first operator of its block
  BlockKind work = BlockKind::F;  ///< F, R, D or W; an optimizer's step is a W
  ChunkId chunk{-1};
  MicrobatchId microbatch{-1};  ///< -1: the optimizer's step
  std::int32_t place = -1;      ///< in the chunk's operators; -1: none of them
  std::int32_t unit = -1;       ///< in StageWork::units; -1: none
  bool has_weights = false;
  Duration duration{};
  std::uint16_t piece = 0, pieces = 1;  ///< of the operator
  std::vector<OperationId> needs{};     ///< operations of the same rank whose results it takes
  /// It waits for the messages that the operator there waits for in the base plan; -1: for none.
  std::int32_t input = -1;
  friend bool operator==(const Operation&, const Operation&) = default;
};

/// Weights that are gathered together, of consecutive operators of a chunk.
struct WeightUnit {
  ChunkId chunk{};
  Bytes weights, gradients;
  friend bool operator==(const WeightUnit&, const WeightUnit&) = default;
};

/// The ranks that a communication of a stage goes among: those that share its tensors, those that
/// hold a copy of its weights together, those that hold the same shard, all replicas.
/// Of those that hold a copy together, where nodes have equal numbers of them: those of a node, and
/// those at one place in their nodes (across), who share what lies at that place.
enum class Members : std::uint8_t { tensor, shard, copies, replicas, node, across };
/// What takes memory beside what a rank always holds: gathered weights, from the begin to the end
/// of the last operation that needs them; gradients, from the begin of the first operation that
/// makes them to the end.
enum class Holds : std::uint8_t { nothing, weights, gradients };

/// A collective of an iteration, the same among all groups of a stage's ranks.
struct Communication {
  Traffic traffic = Traffic::dp;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Members members = Members::replicas;
  Bytes size;  ///< of the whole vector; among copies that of all shards, each of which is its own
  ChunkId chunk{};
  MicrobatchId microbatch{-1};  ///< -1: once an iteration
  std::int32_t unit = -1;
  Holds holds = Holds::nothing;
  std::vector<OperationId> needs{};        ///< operations whose results it moves
  std::vector<OperationId> needed_by{};    ///< operations that wait for what it brings
  std::vector<CommunicationId> follows{};  ///< whose results it moves on
  std::int32_t input = -1;                 ///< whose messages it needs, as Operation::input
  /// Messages to other stages that leave after this block take its result; -1: of none.
  std::int32_t completes = -1;
  /// It does not begin before this operation can, though it does not need it; kNone: it may.
  OperationId at_start_of = kNone<OperationId>;
  /// Position in the base lanes of the operator with which it was cut into pieces; -1: it was not.
  std::int32_t cut_with = -1;
  plan::CollectiveAlgorithm algorithm = plan::CollectiveAlgorithm::ring;
  plan::Mesh mesh{};
  int pieces = 1;

  // What an overlap decides:
  int queue = 0;  ///< those of one queue follow each other on each rank, in the order of issue
  std::vector<OperationId> after{};   ///< it begins when these have ended
  std::vector<OperationId> before{};  ///< they begin when it has ended on their rank
  friend bool operator==(const Communication&, const Communication&) = default;
};

/// When a gradient leaves to the stage before: with the end of its block, or of the last dgrad.
enum class Leaving : std::uint8_t { with_block, with_dgrad };

/// What each rank of a stage does in an iteration. Tasks and communications are named by ids that
/// stay; their orders are lists.
struct StageWork {
  IndexedVector<OperationId, Operation> operations;
  std::vector<OperationId> order;  ///< of the compute lane
  IndexedVector<CommunicationId, Communication> communications;
  std::vector<CommunicationId>
      issue;  ///< all, in the order in which a rank begins those of a queue
  std::vector<WeightUnit> units;
  Leaving leaving = Leaving::with_block;
  Bytes second_copy;  ///< each rank's part of a second copy of the weights

  [[nodiscard]] OperationId add(Operation operation);
  CommunicationId add(Communication communication);
  /// Where each operation stands in `order`. Index: OperationId.
  [[nodiscard]] IndexedVector<OperationId, std::uint32_t> positions() const;
  friend bool operator==(const StageWork&, const StageWork&) = default;
};

/// An iteration of training with its collectives, before ranks and messages are laid out: all ranks
/// of a stage do the same, so that their work is there once. Passes from one of these to another
/// (src/collective/overlap/) decide what runs beside what; lower_iteration() makes it a plan.
struct IterationPlan {
  std::shared_ptr<const Scenario> scenario;  ///< its `parallel` is that of this plan
  std::shared_ptr<const Schedule> schedule;
  /// The operators of all ranks and the messages between stages, without collectives.
  std::shared_ptr<const Plan> base;
  IndexedVector<DeviceId, StageWork> stages;
  /// What pieces of operators take by the scenario's profile; nullptr: it has none.
  std::shared_ptr<const scenario::PieceTimes> piece_times{};
};

}  // namespace longhaul::collective
