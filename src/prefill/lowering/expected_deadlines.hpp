#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "plan/plan.hpp"
#include "prefill/play/block_memory.hpp"
#include "prefill/play/expected_training.hpp"
#include "prefill/play/training_graph.hpp"

namespace longhaul::prefill {

/// What closes the bubbles of placed stages, by the ids of the plan that has them.
struct Closings {
  struct Closing {
    std::int32_t rank = 0;
    std::size_t block = 0;  ///< among those of the rank; their number: the end of all training
    Duration planned{};
  };
  std::shared_ptr<const TrainingGraph> graph;
  /// By op: its id in the graph's own plan; kNone<OpId>: it has none, or no node.
  std::vector<OpId> training_of{};
  std::unordered_map<OpId, Closing> of_stage{};  ///< by the op that has the stage's window

  /// A pass of a prompt on a GPU, which keeps its memory held until it is over: when its last slice
  /// has left, or, of one that sends nothing, its last part has ended; or when it will not begin
  /// any more.
  struct Pass {
    OpId last{};  ///< part
    OpId slice = kNone<OpId>;
    Closing closing{};
  };
  /// What a prompt holds of a GPU, from its first op there on.
  struct Holding {
    std::int32_t rank = 0;
    Bytes bytes{};
    OpId first{};
    Duration planned{};  ///< start of that
    Duration takes{};    ///< that op
    Duration length{};   ///< from there until it is to be released, and what may be late
    std::vector<Pass> passes{};
  };
  std::vector<Holding> holdings{};                     ///< of GPUs whose capacity is known
  std::shared_ptr<const MemoryBesideBlocks> memory{};  ///< nullptr: all fits
};

/// How much later than planned the block that closes a bubble is expected to begin.
[[nodiscard]] Duration lateness(const Closings::Closing& closing, ExpectedTraining& expected,
                                Duration now);

/// Deadlines that move with training: as much later than planned as the block that closes the
/// bubble is expected later (ExpectedTraining, of what has ended by now), and never earlier. What
/// holds a block up for another reason than lateness of what it waits for is not foreseen: such a
/// deadline is too early. They are those of the first iteration of a stream; its others keep what
/// their windows say. A prompt that would start on a GPU without memory for it, beside what others
/// hold there then and what training is expected to take until the prompt has left, is too late.
[[nodiscard]] plan::MovingDeadlines expected_deadlines(Closings closings);

}  // namespace longhaul::prefill
