#include "planner/overlap/overlap_evaluator.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "collective/iteration/iteration_memory.hpp"

namespace longhaul::planner {

using collective::IterationPlan;
using collective::IterationTimes;

PeakMemory peak_of(const IterationPlan& plan, const IterationTimes& times) {
  PeakMemory most;
  Bytes most_lacking;
  const auto& capacities = plan.scenario->memory.capacity;
  for (const Rank rank : times.ranks()) {
    const Bytes peak = collective::peak_memory(plan, times, rank);
    most.peak = std::max(most.peak, peak);
    const std::size_t stage = index(plan.base->ranks[index(rank)].device);
    if (stage >= capacities.size() || !capacities[stage]) continue;
    const Bytes lacking = peak - *capacities[stage];
    if (lacking <= most_lacking) continue;
    most_lacking = lacking;
    most.overflow = MemoryOverflow{rank, peak, *capacities[stage]};
  }
  return most;
}

bool is_better(const EvaluatedOverlap& a, const EvaluatedOverlap& b) {
  if (a.fits != b.fits) return a.fits;
  if (!a.fits && a.peak != b.peak) return a.peak < b.peak;
  return a.makespan < b.makespan;
}

std::optional<EvaluatedOverlap> OverlapEvaluator::operator()(const OverlapDecisions& decisions,
                                                             const EvaluatedOverlap* rival) {
  if (std::ranges::find(seen_, decisions) != seen_.end() || is_spent()) return std::nullopt;
  seen_.push_back(decisions);
  return simulated(decided(variants_[decisions.variant], decisions), decisions, rival);
}

std::optional<EvaluatedOverlap> OverlapEvaluator::simulated(const IterationPlan& plan,
                                                            const OverlapDecisions& decisions,
                                                            const EvaluatedOverlap* rival) {
  std::optional<MakespanLimit> limit;
  if (rival != nullptr && rival->fits) limit = MakespanLimit{rival->makespan};
  const Result<SimulatedIteration> ran = simulate_iteration(plan, memo_, limit ? &*limit : nullptr);
  ++evaluated_;
  if (!ran) return std::nullopt;
  ops_ += ran->lowered.plan.ops.size();
  if (limit && limit->is_reached) return std::nullopt;
  const auto by_end = [](const OpTime& each) { return each.end; };
  if (limit && by_end(*std::ranges::max_element(ran->times, {}, by_end)) >= limit->at)
    return std::nullopt;
  const IterationTimes times{ran->lowered, ran->times};
  const PeakMemory memory = peak_of(plan, times);
  return EvaluatedOverlap{decisions, times.makespan(), memory.peak, memory.fits(), ran->grain};
}

}  // namespace longhaul::planner
