#include "planner/overlap/evaluate_overlap.hpp"

#include <algorithm>

#include "collective/iteration/iteration_memory.hpp"
#include "collective/overlap/rewrites.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

using collective::Exposure;
using collective::IterationPlan;
using collective::IterationTimes;

/// The rank with the most exposed communication and the most memory of a rank.
void take_times(const IterationPlan& plan, const IterationTimes& times, OverlapResult& result) {
  result.makespan = times.makespan();
  bool is_first = true;
  for (const Rank rank : ids<Rank>(plan.scenario->training_ranks())) {
    const Exposure exposure = times.exposure(rank);
    if (is_first || exposure.total_exposed() > result.exposure.total_exposed()) {
      result.exposure = exposure;
      result.rank = rank;
    }
    const Bytes peak = collective::peak_memory(plan, times, rank);
    if (is_first || peak > result.peak) {
      const auto& capacities = plan.scenario->memory.capacity;
      const auto stage = index(plan.base->ranks[index(rank)].device);
      result.peak = peak;
      result.capacity = stage < capacities.size() ? capacities[stage] : std::nullopt;
    }
    is_first = false;
  }
}

/// Of the iteration when nothing overlaps.
double alpha_of(const IterationPlan& plan, const IterationTimes& times) {
  double most = 0;
  double alpha = 0;
  for (const Rank rank : ids<Rank>(plan.scenario->training_ranks())) {
    const auto communication = static_cast<double>(times.exposure(rank).total().count());
    const double both = communication + static_cast<double>(times.computation(rank).count());
    if (both <= most) continue;
    most = both;
    alpha = communication / both;
  }
  return alpha;
}

}  // namespace

double OverlapResult::speedup_bound() const {
  if (alpha <= 0 || alpha >= 1) return 1;
  return std::min(1 / alpha, 1 / (1 - alpha));
}

double OverlapResult::gap() const {
  if (bound.lower_bound == Duration{}) return 0;
  return static_cast<double>(makespan.count()) / static_cast<double>(bound.lower_bound.count()) - 1;
}

Result<SimulatedIteration> simulate_iteration(const IterationPlan& plan) {
  Result<collective::LoweredIteration> lowered = collective::lower_iteration(plan);
  if (!lowered) return lowered.refusal();
  Result<OpTimes> times = sim::try_simulate(lowered->plan);
  if (!times) return times.refusal();
  return SimulatedIteration{*std::move(lowered), *std::move(times)};
}

Result<OverlapResult> evaluate_overlap(const collective::Overlap& overlap, const Schedule& schedule,
                                       const Scenario& scenario, Arrangement arrangement) {
  const Result<IterationPlan> plan =
      collective::overlapped(overlap, schedule, scenario, arrangement);
  if (!plan) return plan.refusal();
  const Result<SimulatedIteration> ran = simulate_iteration(*plan);
  if (!ran) return ran.refusal();
  OverlapResult result;
  result.schedule = schedule.name;
  result.overlap = overlap.name;
  result.parallel = plan->scenario->parallel;
  take_times(*plan, IterationTimes{ran->lowered, ran->times}, result);
  result.bound = bound_of_overlaps(*plan);
  const IterationPlan serial = collective::serialized(*plan);
  const Result<SimulatedIteration> alone = simulate_iteration(serial);
  if (!alone) return alone.refusal();
  result.alpha = alpha_of(serial, IterationTimes{alone->lowered, alone->times});
  return result;
}

}  // namespace longhaul::planner
