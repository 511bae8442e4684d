#include "schedule/generators/cell/cell_earliest.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::schedule::families {

EarliestTimes::EarliestTimes(const CellProblem& problem, std::span<const LeastHop> hops)
    : problem_{problem},
      hops_{hops},
      inputs_(problem.activations.size() * to_size(problem.microbatches)),
      gradients_(inputs_.size()),
      free_(problem.activations.size()),
      turns_free_(problem.turns.size()) {
  Duration back{};
  for (std::size_t s = 0; s < problem.stages.size(); ++s) {
    back_.push_back(back);
    if (s + 1 < problem.stages.size())
      back += problem.stages[s].backward + hops[s].home_transfer + hops[s].home_latency;
  }
  for (std::size_t node = 0; node < free_.size(); ++node) {
    const CellStage& stage = problem.stages[node % problem.stages.size()];
    const Duration again = stage.recomputes ? stage.recompute : Duration::zero();
    left_.push_back(problem.microbatches * (stage.forward + again + stage.backward));
  }
  fill_rest();
}

/// From the last stage on: the rest after a stage is the next one's work, or the rest after that.
void EarliestTimes::fill_rest() {
  const auto rows = to_size(problem_.microbatches);
  rest_.resize(problem_.stages.size() * rows);
  for (std::size_t s = problem_.stages.size() - 1; s-- > 0;) {
    const CellStage& next = problem_.stages[s + 1];
    const Duration again = next.recomputes ? next.recompute : Duration::zero();
    const Duration work = next.forward + again + next.backward;
    for (std::size_t m = 0; m < rows; ++m) {
      const Duration there = static_cast<std::int64_t>(rows - m) * work + back_[s + 1];
      rest_[s * rows + m] = hops_[s].transfer + hops_[s].latency +
                            std::max(there, next.forward + rest_[(s + 1) * rows + m]);
    }
  }
}

Duration EarliestTimes::arrival(const CellHop& hop, Duration ready, Duration transfer,
                                Duration latency) {
  if (hop.turns < 0) return ready + transfer + latency;
  Duration& free = turns_free_[at(hop.turns)];
  free = std::max(free, ready) + transfer;
  return free + latency;
}

void EarliestTimes::add(std::size_t node, BlockKind kind, MicrobatchId microbatch) {
  const std::size_t s = node % problem_.stages.size();
  const CellStage& stage = problem_.stages[s];
  const std::size_t here = slot(node, microbatch);
  Duration& free = free_[node];
  Duration length = stage.recompute;
  if (kind == BlockKind::F) {
    length = stage.forward;
    free = std::max(free, inputs_[here]) + length;
    if (s + 1 == problem_.stages.size()) {
      gradients_[here] = free;
    } else {
      bound_ = std::max(bound_, free + rest_[slot(s, microbatch)]);
      inputs_[slot(node + 1, microbatch)] =
          arrival(problem_.activations[node], free, hops_[s].transfer, hops_[s].latency);
    }
  } else if (kind == BlockKind::B) {
    length = stage.backward;
    free = std::max(free, gradients_[here]) + length;
    if (s > 0)
      gradients_[slot(node - 1, microbatch)] = arrival(
          problem_.gradients[node], free, hops_[s - 1].home_transfer, hops_[s - 1].home_latency);
  } else {
    free += length;
  }
  left_[node] -= length;
  bound_ = std::max(bound_, free + left_[node] + back_[s]);
}

}  // namespace longhaul::schedule::families
