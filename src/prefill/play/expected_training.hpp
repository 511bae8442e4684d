#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefill/bubbles/bubbles.hpp"
#include "prefill/play/play.hpp"
#include "prefill/play/training_graph.hpp"

namespace longhaul::prefill {

/// What one goes by who expects training, and how many iterations a stretch has.
struct Expectation {
  Signals signals = Signals::both;
  int iterations = 1;
};

/// A stretch of training as one expects it who hears of ends: what has ended, ended then; what has
/// not takes the plan's time from when all that it waits for is over, and ends no earlier than now.
/// Times count from the stretch's begin. A block that something else holds up is expected too early
/// until it ends: who gives way to it gives way too soon, never too late.
/// That is Signals::both. `plan`: what has not ended takes the plan's times from the stretch's
/// begin, whatever has ended before. `signals`: a bubble is as long as it was an iteration before;
/// in the first one of a stretch, as the plan says.
class ExpectedTraining {
public:
  /// `graph` lives as long.
  explicit ExpectedTraining(const TrainingGraph& graph, const Expectation& by = {});
  /// Nothing has ended yet.
  void begin();
  /// An op of the plan of training has ended.
  void heed(OpId op, Duration end);

  [[nodiscard]] bool is_over() const { return open_ == 0; }
  /// The place, among the blocks of a GPU, of the first one that has not ended; their number: none.
  [[nodiscard]] std::size_t next_block(std::int32_t rank) const {
    return next_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::size_t blocks(std::int32_t rank) const { return graph_.blocks(rank).size(); }
  /// When the bubble before that block opens, and when it closes; after the last block the end of
  /// all training closes it.
  [[nodiscard]] Duration opens(std::int32_t rank, std::size_t block, Duration now);
  [[nodiscard]] Duration closes(std::int32_t rank, std::size_t block, Duration now);
  [[nodiscard]] Duration end(Duration now);
  /// Has all ended that the GPU's next block waits for? Then it computes, or is kept waiting.
  [[nodiscard]] bool is_ready(std::int32_t rank) const { return ready_at(rank) < Duration::max(); }
  /// When the last of it did; Duration::max() where something has not, or the GPU has no next
  /// block.
  [[nodiscard]] Duration ready_at(std::int32_t rank) const;
  /// Of the GPUs, those that have closed left out; the period is the expected end.
  [[nodiscard]] IterationBubbles bubbles(Duration now);

private:
  static constexpr Duration kOpen{-1};
  struct Times {
    Duration start{}, hold_end{}, end{};
  };
  void expect_upto(std::size_t last, Duration now);
  [[nodiscard]] Duration expected_start(std::size_t node) const;
  [[nodiscard]] Duration gap_before(std::int32_t rank, std::size_t block) const;

  const TrainingGraph& graph_;
  Expectation by_;
  std::vector<std::size_t> place_;        ///< by node: of a block, among those of its GPU
  std::vector<std::uint32_t> node_of_;    ///< by op of training
  std::vector<Duration> hold_end_, end_;  ///< by node, as heard; kOpen: not yet
  std::vector<Times> expected_;
  std::vector<std::size_t> next_;  ///< by rank
  std::size_t open_ = 0;           ///< nodes that have not ended
  std::size_t first_open_ = 0;     ///< all nodes before it are over, and expected as they were
  std::size_t known_ = 0;          ///< those before it are expected as of `known_at_`
  Duration known_at_{};
};

}  // namespace longhaul::prefill
