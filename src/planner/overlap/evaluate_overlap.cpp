#include "planner/overlap/evaluate_overlap.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "collective/iteration/communications.hpp"
#include "collective/overlap/rewrites.hpp"
#include "planner/collectives/collective_times.hpp"
#include "planner/collectives/time_alone.hpp"
#include "planner/make_schedule.hpp"
#include "planner/overlap/overlap_evaluator.hpp"
#include "planner/overlap/overlap_search.hpp"
#include "sim/lane_sweep.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

using collective::Exposure;
using collective::FoldedIteration;
using collective::IterationPlan;
using collective::IterationTimes;

/// The rank with the most exposed communication, and the memory of all ranks.
void take_times(const IterationPlan& plan, const IterationTimes& times, OverlapResult& result) {
  result.makespan = times.makespan();
  bool is_first = true;
  for (const Rank rank : times.ranks()) {
    const Exposure exposure = times.exposure(rank);
    if (is_first || exposure.total_exposed() > result.exposure.total_exposed()) {
      result.exposure = exposure;
      result.rank = rank;
    }
    is_first = false;
  }
  const PeakMemory memory = peak_of(plan, times);
  result.peak = memory.peak;
  result.overflow = memory.overflow;
}

/// Of the iteration when nothing overlaps.
double alpha_of(const IterationTimes& times) {
  double most = 0;
  double alpha = 0;
  for (const Rank rank : times.ranks()) {
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

namespace {

/// Of a group, at most.
int members_of(const collective::Communication& each, const Parallel& parallel) {
  const bool of_shard =
      each.members == collective::Members::node || each.members == collective::Members::across;
  return of_shard ? parallel.shard : collective::count_of(each.members, parallel);
}

/// Of all ranks, by rings: other algorithms have no more.
std::size_t most_messages(const IterationPlan& plan) {
  std::size_t messages = 0;
  for (const DeviceId stage : plan.stages.ids()) {
    const Parallel& parallel = plan.scenario->parallel;
    const auto ranks = to_size(parallel.replicas) * to_size(parallel.tensor);
    for (const collective::Communication& each : plan.stages[stage].communications) {
      const auto members = to_size(members_of(each, parallel));
      const std::size_t phases = each.kind == CollectiveKind::all_reduce ? 2 : 1;
      messages += phases * ranks * (members - 1) * to_size(each.pieces);
    }
  }
  return messages;
}

}  // namespace

Result<SimulatedIteration> simulate_whole_collectives(const IterationPlan& plan) {
  for (const DeviceId stage : plan.stages.ids())
    for (const collective::Communication& each : plan.stages[stage].communications) {
      const auto members = to_size(members_of(each, plan.scenario->parallel));
      if (2 * members * members > kMostMessages)
        return refused(
            "{} of {} ranks has too many messages (more than {} are not played). Use fewer "
            "replicas, or a smaller shard.",
            to_text(each.kind), members, kMostMessages);
    }
  Result<collective::LoweredIteration> lowered =
      collective::lower_whole_collectives(plan, time_alone(*plan.scenario));
  if (!lowered) return lowered.refusal();
  Result<OpTimes> times = sim::try_simulate(lowered->plan);
  if (!times) return times.refusal();
  return SimulatedIteration{*std::move(lowered), *std::move(times), Grain::whole};
}

std::optional<SimulatedIteration> simulate_folded(const IterationPlan& plan,
                                                  collective::FoldingMemo& memo,
                                                  MakespanLimit* limit) {
  std::optional<FoldedIteration> folded = FoldedIteration::of(plan, memo);
  if (!folded) return std::nullopt;
  std::vector<sim::Tie> ties;
  sim::LaneSweep sweep{folded->lowered().plan};
  sweep.note_ties(ties);
  if (limit != nullptr) sweep.give_up_at(limit->at);
  Result<OpTimes> times = sweep.run();
  if (!times && !sweep.has_given_up()) return std::nullopt;
  std::ranges::sort(ties);
  ties.erase(std::ranges::unique(ties).begin(), ties.end());
  for (const sim::Tie& tie : ties)  // until it gave up, all that it served was as in the whole
    if (!folded->orders_all_the_same(tie.resource, tie.first, tie.second)) return std::nullopt;
  if (sweep.has_given_up()) {
    limit->is_reached = true;
    return SimulatedIteration{std::move(*folded).take(), {}};
  }
  return SimulatedIteration{std::move(*folded).take(), *std::move(times)};
}

Result<SimulatedIteration> simulate_iteration(const IterationPlan& plan) {
  collective::FoldingMemo memo;
  return simulate_iteration(plan, memo);
}

Result<SimulatedIteration> simulate_iteration(const IterationPlan& plan,
                                              collective::FoldingMemo& memo, MakespanLimit* limit) {
  if (std::optional<SimulatedIteration> folded = simulate_folded(plan, memo, limit))
    return *std::move(folded);
  if (most_messages(plan) > collective::kMostMessagesOfIteration)
    return simulate_whole_collectives(plan);
  return simulate_all_ranks(plan);
}

Result<SimulatedIteration> simulate_all_ranks(const IterationPlan& plan) {
  Result<collective::LoweredIteration> lowered = collective::lower_iteration(plan);
  if (!lowered) return lowered.refusal();
  Result<OpTimes> times = sim::try_simulate(lowered->plan);
  if (!times) return times.refusal();
  return SimulatedIteration{*std::move(lowered), *std::move(times)};
}

namespace {

Result<double> alpha_without_overlap(const IterationPlan& undecided) {
  const Result<SimulatedIteration> alone = simulate_iteration(collective::serialized(undecided));
  if (!alone) return alone.refusal();
  return alpha_of(IterationTimes{alone->lowered, alone->times});
}

Result<DecidedIteration> searched_iteration(const collective::Overlap& overlap,
                                            const Schedule& schedule, const Scenario& scenario,
                                            Arrangement arrangement, const OverlapLimits& limits,
                                            const SearchWatch& watch) {
  const auto begin = std::chrono::steady_clock::now();
  Result<FoundOverlap> searched =
      searched_overlap(overlap.name, schedule, scenario, arrangement, limits, watch);
  if (!searched) return searched.refusal();
  FoundOverlap found = *std::move(searched);
  OverlapCertificate certificate{std::move(found.baselines),
                                 found.is_proof,
                                 std::move(found.decided),
                                 Duration{},
                                 found.evaluated,
                                 found.is_stopped};
  certificate.search =
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  const Result<double> alpha = alpha_without_overlap(found.undecided);
  if (!alpha) return alpha.refusal();
  return DecidedIteration{std::move(found.plan), *alpha, std::move(found.bound),
                          std::move(certificate)};
}

}  // namespace

Result<DecidedIteration> decided_iteration(const collective::Overlap& overlap,
                                           const Schedule& schedule, const Scenario& scenario,
                                           Arrangement arrangement, const OverlapLimits& limits,
                                           const SearchWatch& watch) {
  if (overlap.is_searched())
    return searched_iteration(overlap, schedule, scenario, arrangement, limits, watch);
  Result<IterationPlan> plan = collective::overlapped(overlap, schedule, scenario, arrangement);
  if (!plan) return plan.refusal();
  const Result<double> alpha = alpha_without_overlap(*plan);
  if (!alpha) return alpha.refusal();
  return DecidedIteration{*std::move(plan), *alpha, {}, {}};
}

Result<IterationPlan> iteration_named(std::string_view name, const Scenario& scenario,
                                      Arrangement arrangement, const OverlapLimits& limits,
                                      const SearchWatch& watch) {
  const std::size_t plus = name.rfind('+');
  if (plus == std::string_view::npos)
    return refused("{} ran without an overlap (its name would be as gpipe+zero3).", name);
  const collective::Overlap& overlap = *collective::parse_overlaps(name.substr(plus + 1)).front();
  PlannerOptions options;
  options.search.arrangement = arrangement;
  const Result<ScheduleResult> schedule =
      try_make(parse_single_schedule_option(name.substr(0, plus)), scenario, options);
  if (!schedule) return schedule.refusal();
  OverlapLimits own = limits;
  own.orders_too = schedule->found.has_value();
  Result<DecidedIteration> made =
      decided_iteration(overlap, schedule->schedule, scenario, arrangement, own, watch);
  if (!made) return made.refusal();
  return std::move(made->plan);
}

Result<OverlapResult> evaluate_iteration(const DecidedIteration& iteration,
                                         const std::string& schedule, const std::string& overlap) {
  const IterationPlan& plan = iteration.plan;
  const Result<SimulatedIteration> ran = simulate_iteration(plan);
  if (!ran) return ran.refusal();
  OverlapResult result;
  result.schedule = schedule;
  result.overlap = overlap;
  result.parallel = plan.scenario->parallel;
  result.grain = ran->grain;
  take_times(plan, IterationTimes{ran->lowered, ran->times}, result);
  result.bound = iteration.bound ? *iteration.bound : bound_of_overlaps(plan);
  result.certificate = iteration.certificate;
  result.alpha = iteration.alpha;
  result.plan = std::make_shared<const IterationPlan>(plan);
  return result;
}

Result<OverlapResult> evaluate_overlap(const collective::Overlap& overlap, const Schedule& schedule,
                                       const Scenario& scenario, Arrangement arrangement,
                                       const OverlapLimits& limits, const SearchWatch& watch) {
  Result<DecidedIteration> made =
      decided_iteration(overlap, schedule, scenario, arrangement, limits, watch);
  if (!made) return made.refusal();
  return evaluate_iteration(*made, schedule.name, overlap.name);
}

}  // namespace longhaul::planner
