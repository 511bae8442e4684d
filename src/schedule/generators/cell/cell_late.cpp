#include <algorithm>

#include "base/index.hpp"
#include "schedule/generators/cell/cell.hpp"

namespace longhaul::schedule::families {
namespace {

constexpr Duration kForever = Duration::max();

/// Starts of the F of one node, by microbatch.
std::vector<Duration> forward_starts(const CellTimes& times, std::size_t node) {
  std::vector<Duration> starts;
  for (std::size_t i = 0; i < times.rows[node].size(); ++i)
    if (times.rows[node][i].kind == BlockKind::F) starts.push_back(times.starts[node][i]);
  return starts;
}

class LateNode {
public:
  LateNode(const CellProblem& problem, CellTimes& times, std::size_t node)
      : hop_{problem.activations[node]},
        stage_{problem.stages[node % problem.stages.size()]},
        row_{times.rows[node]},
        starts_{times.starts[node]},
        needed_{forward_starts(times, at(hop_.node))} {}

  void delay() {
    const std::vector<Duration> early = starts_;
    Duration next_block = kForever;
    Duration next_transfer = kForever;
    for (std::size_t i = row_.size(); i-- > 0;) {
      if (row_[i].kind == BlockKind::R) starts_[i] = next_block - stage_.recompute;
      if (row_[i].kind == BlockKind::F) delay_forward(i, next_block, next_transfer);
      next_block = starts_[i];
    }
    restore_recomputes(early);
  }

private:
  void delay_forward(std::size_t i, Duration next_block, Duration& next_transfer) {
    const Duration input = needed_[at(row_[i].microbatch)];
    const Duration leaves = std::min(input - hop_.way.latency, next_transfer) - hop_.way.transfer;
    starts_[i] = std::max(starts_[i], std::min(leaves, next_block) - stage_.forward);
    next_transfer = std::max(leaves, starts_[i] + stage_.forward);
  }

  /// R as early as before where the F before them let them.
  void restore_recomputes(const std::vector<Duration>& early) {
    for (std::size_t i = 1; i < row_.size(); ++i) {
      if (row_[i].kind != BlockKind::R) continue;
      const Duration before = row_[i - 1].kind == BlockKind::F   ? stage_.forward
                              : row_[i - 1].kind == BlockKind::R ? stage_.recompute
                                                                 : stage_.backward;
      starts_[i] = std::max(early[i], starts_[i - 1] + before);
    }
  }

  const CellHop& hop_;
  const CellStage& stage_;
  const std::vector<Block>& row_;
  std::vector<Duration>& starts_;
  std::vector<Duration> needed_;  ///< index: microbatch; when the next stage runs its F
};

}  // namespace

void start_late(const CellProblem& problem, CellTimes& times) {
  for (std::size_t node = times.rows.size(); node-- > 0;) {
    const CellHop& hop = problem.activations[node];
    // Not where the message has a turn to take, nor on the last stage.
    if (hop.node >= 0 && hop.turns < 0) LateNode{problem, times, node}.delay();
  }
}

}  // namespace longhaul::schedule::families
