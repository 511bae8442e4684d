#include "planner/overlap/evaluate_overlap.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "collective/folding/folded_iteration.hpp"
#include "collective/iteration/communications.hpp"
#include "collective/iteration/iteration_memory.hpp"
#include "collective/overlap/rewrites.hpp"
#include "planner/collectives/collective_times.hpp"
#include "planner/collectives/time_alone.hpp"
#include "planner/overlap/overlap_search.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

using collective::Exposure;
using collective::FoldedIteration;
using collective::IterationPlan;
using collective::IterationTimes;

/// The rank with the most exposed communication and the most memory of a rank.
void take_times(const IterationPlan& plan, const IterationTimes& times, OverlapResult& result) {
  result.makespan = times.makespan();
  bool is_first = true;
  for (const Rank rank : times.ranks()) {
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

std::optional<SimulatedIteration> simulate_folded(const IterationPlan& plan) {
  std::optional<FoldedIteration> folded = FoldedIteration::of(plan);
  if (!folded) return std::nullopt;
  std::vector<sim::Tie> ties;
  Result<OpTimes> times = sim::try_simulate(folded->lowered().plan, ties);
  if (!times) return std::nullopt;
  for (const sim::Tie& tie : ties)
    if (!folded->orders_all_the_same(tie.resource, tie.first, tie.second)) return std::nullopt;
  return SimulatedIteration{std::move(*folded).take(), *std::move(times)};
}

Result<SimulatedIteration> simulate_iteration(const IterationPlan& plan) {
  if (std::optional<SimulatedIteration> folded = simulate_folded(plan)) return *std::move(folded);
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

/// The plan under the overlap; of a searched one what the search found, and its certificate.
struct PlannedOverlap {
  IterationPlan plan, undecided;
  std::optional<OverlapBound> bound;
  std::optional<OverlapCertificate> certificate;
};

Result<PlannedOverlap> planned(const collective::Overlap& overlap, const Schedule& schedule,
                               const Scenario& scenario, Arrangement arrangement) {
  if (!overlap.is_searched()) {
    Result<IterationPlan> plan = collective::overlapped(overlap, schedule, scenario, arrangement);
    if (!plan) return plan.refusal();
    return PlannedOverlap{*plan, *plan, {}, {}};
  }
  const auto begin = std::chrono::steady_clock::now();
  Result<FoundOverlap> found = searched_overlap(overlap.name, schedule, scenario, arrangement);
  if (!found) return found.refusal();
  OverlapCertificate certificate{std::move(found->baselines), found->is_proof,
                                 std::move(found->decided), Duration{}, found->evaluated};
  certificate.search =
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  return PlannedOverlap{std::move(found->plan), std::move(found->undecided),
                        std::move(found->bound), std::move(certificate)};
}

}  // namespace

Result<OverlapResult> evaluate_overlap(const collective::Overlap& overlap, const Schedule& schedule,
                                       const Scenario& scenario, Arrangement arrangement) {
  Result<PlannedOverlap> made = planned(overlap, schedule, scenario, arrangement);
  if (!made) return made.refusal();
  const IterationPlan& plan = made->plan;
  const Result<SimulatedIteration> ran = simulate_iteration(plan);
  if (!ran) return ran.refusal();
  OverlapResult result;
  result.schedule = schedule.name;
  result.overlap = overlap.name;
  result.parallel = plan.scenario->parallel;
  result.grain = ran->grain;
  take_times(plan, IterationTimes{ran->lowered, ran->times}, result);
  result.bound = made->bound ? *made->bound : bound_of_overlaps(plan);
  result.certificate = made->certificate;
  const IterationPlan serial = collective::serialized(made->undecided);
  const Result<SimulatedIteration> alone = simulate_iteration(serial);
  if (!alone) return alone.refusal();
  result.alpha = alpha_of(IterationTimes{alone->lowered, alone->times});
  return result;
}

}  // namespace longhaul::planner
