#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "plan/plan.hpp"
#include "prefill/placement.hpp"
#include "prefill/play/block_memory.hpp"
#include "prefill/play/training_graph.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::prefill {

/// One stage of a pass of a placed prompt on its GPU, at the times of the placement.
struct PlacedStage {
  std::size_t decision = 0;  ///< index of the Decision that it is of
  int stage = 0;
  Rank rank{};
  Duration start{}, duration{};
  int pass = 0;
  std::int64_t context = 0, tokens = 0;  ///< of the prompt: before this pass, and in it
  std::int64_t in_pass = 0;              ///< of all prompts that share it
  [[nodiscard]] Duration end() const { return start + duration; }
};

/// The stages of all placed prompts, by decision, then by pass, then by stage. Pipelines are looked
/// up by number. Throws Error where a decision names one that does not serve.
[[nodiscard]] std::vector<PlacedStage> placed_stages(const std::vector<Served>& served,
                                                     const std::vector<Decision>& decisions);

/// Does a prefill give way to training? `careless`, a control that must be seen to harm, starts
/// whenever its device is free once its request has arrived, before its time or after it.
enum class Manners : std::uint8_t { gives_way, careless };

struct FillOptions {
  Manners manners = Manners::gives_way;
  /// How keys and values of models that have a `decode` leave; nullopt: they stay.
  std::optional<KvSending> kv{};
  /// Of training's plan and times: deadlines move with its lateness (expected_deadlines()).
  /// nullptr: they stay.
  std::shared_ptr<const TrainingGraph> graph{};
  /// Of training beside them, with `graph`: no prompt begins on a GPU that lacks memory for it.
  /// nullptr: memory counts nothing.
  std::shared_ptr<const MemoryBesideBlocks> memory{};
};

/// A stage of a prefill, and the op that it is; or, in parts one after the other, the last of them.
/// Prompts that share a pass have the same ops.
struct FilledStage {
  PlacedStage placed;
  OpId op{};
  OpId first{};  ///< part
};

/// The first token of a prompt at its decode rank: it begins when all keys and values are there.
struct FilledToken {
  std::size_t decision = 0;
  OpId op{};
};

/// A message of a prefill: to a stage from the one before it, or a slice of the keys and values of
/// a stage.
struct FilledMessage {
  std::size_t stage = 0;  ///< of FilledPlan::stages: to which it goes, or whose it is
  OpId send{}, recv{};
  bool is_slice = false;
  std::int64_t first = 0, bytes = 0;  ///< of a slice: among those of the stage in this pass
};

/// A plan of training with placed prefills in its bubbles.
struct FilledPlan {
  Plan plan;
  std::vector<FilledStage> stages;  ///< as placed_stages()
  std::vector<FilledToken> tokens;  ///< ascending by decision, of those whose keys and values leave
  std::vector<OpId> training;       ///< by op of the plan without prefills: its id here
  std::vector<FilledMessage> messages{};
};

/// Adds the stages of placed prompts to a plan of training whose predicted times are `times`. Each,
/// of each pass, is an optional op of its own lane, "prefill", on the device of its rank:
///  - it starts at its placed time at the earliest, after the block whose end opens its bubble;
///  - its deadline is the predicted start of the block that closes the bubble, or `end` after the
///    last, and with FillOptions::graph as much later as that is expected later when the stage
///    could start: what would end later is skipped, and so are its prompt's later stages and
///    passes, and those of all prompts that share it. The placement has no stage after `end`
///    (FillRange::apart);
///  - between stages a message carries the activation (tokens x hidden x 2 bytes, where dimensions
///    are known), which takes ServedModel::hop and holds no link.
/// Training's ops keep their order, and none of them depends on one that was added: where all take
/// their planned times the simulator gives training its own times, and stages those of the
/// placement.
///
/// With FillOptions::kv a stage's keys and values go to the decode rank of its datacenter, a slice
/// after the other, over the interface that training's messages inside the datacenter hold, too
/// (PlanAdditions::interface_of()); it serves in order of readiness. A slice gets ready when the
/// one before it has left, so that a message of training waits for one slice at most of each prompt
/// that is being sent. Layer by layer, a stage is as many ops as layers, of which the first alone
/// has a window: once begun it goes on. When all slices are there the decode rank computes the
/// first token (FilledToken), as many at a time as it has slots. No stage waits for any of it.
/// Throws Error where a datacenter that sends has no decode rank.
[[nodiscard]] FilledPlan fill_plan(const Plan& training, const OpTimes& times, Duration end,
                                   const std::vector<Served>& served,
                                   const std::vector<Decision>& decisions,
                                   const FillOptions& options = {});

}  // namespace longhaul::prefill
