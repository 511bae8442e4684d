#pragma once

#include <span>
#include <vector>

#include "base/index.hpp"
#include "schedule/generators/cell/atlas.hpp"
#include "schedule/generators/cell/cell.hpp"

namespace longhaul::schedule::families {

/// How early the orders of a run let blocks and messages go, while the run makes them: each as soon
/// as those before it and its inputs are through, with no heed to rule 3. No plan of these
/// orders ends before bound().
class EarliestTimes {
public:
  /// `hops`: index: stage before the boundary.
  EarliestTimes(const CellProblem& problem, std::span<const LeastHop> hops);

  /// The next block of the node's row, with the message after it.
  void add(std::size_t node, BlockKind kind, MicrobatchId microbatch);

  /// With all blocks added: when the last one ends.
  [[nodiscard]] Duration bound() const { return bound_; }

private:
  [[nodiscard]] std::size_t slot(std::size_t node, MicrobatchId microbatch) const {
    return node * to_size(problem_.microbatches) + at(microbatch);
  }
  void fill_rest();
  Duration arrival(const CellHop& hop, Duration ready, Duration transfer, Duration latency);

  const CellProblem& problem_;
  std::span<const LeastHop> hops_;
  std::vector<Duration> inputs_, gradients_;  ///< index: slot(); arrivals
  std::vector<Duration> free_;                ///< index: node
  std::vector<Duration> left_;                ///< index: node; blocks that are not added yet
  std::vector<Duration> back_;  ///< index: stage; from its last B to the end of the first stage's
  /// Index: slot() of a stage and a microbatch; from the end of its F to that of the iteration, by
  /// the way to each later stage and the work that is left there then.
  std::vector<Duration> rest_;
  std::vector<Duration> turns_free_;
  Duration bound_{};
};

}  // namespace longhaul::schedule::families
