#pragma once

#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "plan/plan.hpp"
#include "schedule/memory.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// The blocks of the solver's model under their numbers: F, R where the chunk is recomputed, D, W.
class ModelBlocks {
public:
  /// `layout` must outlive this; its rows do not count.
  explicit ModelBlocks(const Schedule& layout) : layout_{layout} {}

  void add(const Block& block);
  [[nodiscard]] const Schedule& layout() const { return layout_; }
  /// All blocks; index: their number.
  [[nodiscard]] const std::vector<Block>& all() const { return blocks_; }
  /// -1 where it is not in the model.
  [[nodiscard]] int index_of(const Block& block) const;

  /// The block that takes the output of a block, and whether a message carries it there.
  struct Taker {
    int block = -1;
    bool remote = false;
  };
  [[nodiscard]] Taker taker(const Block& block) const;

private:
  [[nodiscard]] int taker_of_gradient(ChunkId chunk, MicrobatchId microbatch) const;

  const Schedule& layout_;
  std::vector<Block> blocks_;
  std::map<Block, int> index_of_;
};

/// Pairs of blocks of one device: the second starts when the first has ended.
[[nodiscard]] nlohmann::json dependencies_of(const ModelBlocks& blocks);

// Resources that the blocks of the solver's model contend for, beside their devices: links, lanes
// of collectives, memory.

struct ModelMessages {
  nlohmann::json json;
  bool exact = true;  ///< does one pipeline say what all replicas do?
};
/// A message for each block whose output goes to another device. Replicas follow one order: a
/// message takes as long as in the slowest of them, and where they share a resource, as all of
/// theirs one after the other.
[[nodiscard]] ModelMessages messages_of(const ModelBlocks& blocks, const Plan& plan);

/// Gathers of weights and reductions of gradients, each with the blocks that it precedes or
/// follows.
[[nodiscard]] nlohmann::json collectives_of(const ModelBlocks& blocks, const Plan& plan);

/// Memory in portions, each held from the start of one block to the end of another.
[[nodiscard]] nlohmann::json held_of(const ModelBlocks& blocks,
                                     const schedule::ActivationModel& memory);

/// Bytes that activations may take on each device: the budget, and what its capacity leaves of it.
[[nodiscard]] nlohmann::json memory_limits_of(const Schedule& layout, const Scenario& scenario);

}  // namespace longhaul::planner
