#include "planner/overlap/place_gathers.hpp"

#include <algorithm>
#include <utility>

#include "collective/iteration/iteration_of.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "planner/overlap/overlap_evaluator.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

using collective::BlockSpan;
using collective::BlockSpans;
using collective::ChunkGather;
using collective::ChunkGathers;
using collective::IterationPlan;

constexpr int kUsuallyActive = 3;

/// Of each block from its first operation to its last.
BlockSpans spans_of(const IterationPlan& plan, const SimulatedIteration& ran) {
  BlockSpans spans;
  for (const DeviceId stage : plan.stages.ids()) {
    const collective::StageWork& work = plan.stages[stage];
    const Rank rank = plan.scenario->rank(ReplicaId{0}, stage);
    std::vector<BlockSpan>& own = spans.items().emplace_back();
    std::int64_t last = -1;
    for (std::uint32_t place = 0; place < work.order.size(); ++place) {
      const collective::Operation& operation = work.operations[work.order[place]];
      if (number(operation.microbatch) < 0) continue;
      const OpTime& time = ran.times[index(ran.lowered.op_of(rank, place))];
      if (std::int64_t{operation.block} != last) own.push_back({time.start, time.end});
      own.back().end = time.end;
      last = operation.block;
    }
  }
  return spans;
}

/// Without operators.
BlockSpans spans_of_blocks(const Schedule& schedule, const Scenario& scenario, const Plan& plan,
                           const OpTimes& times) {
  BlockSpans spans;
  for (const DeviceId stage : schedule.device_ids()) {
    const Lane& lane = collective::compute_lane(plan, scenario.rank(ReplicaId{0}, stage));
    std::vector<BlockSpan>& own = spans.items().emplace_back();
    for (std::uint32_t i = 0; i < lane.count; ++i) {
      const std::size_t op = index(lane.first) + i;
      if (!is_optimizer_step(plan.ops[op])) own.push_back({times[op].start, times[op].end});
    }
  }
  return spans;
}

class GatherPlacer {
public:
  GatherPlacer(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
               std::size_t evaluations)
      : schedule_{schedule},
        scenario_{scenario},
        arrangement_{arrangement},
        evaluations_{evaluations} {}

  Result<PlacedGathers> run() {
    Result<PlacedGathers> usual = evaluated(collective::gathers_of_next(schedule_, kUsuallyActive));
    if (!usual) return usual;
    best_ = *usual;
    const int chunks = static_cast<int>(schedule_.chunks / schedule_.devices);
    for (int active = 1; active <= chunks + 1; ++active)
      take(collective::gathers_of_next(schedule_, active));
    for (bool gains = true; gains && count_ < evaluations_;) gains = improve_all();
    best_.usual = usual->makespan;
    best_.usual_fits = usual->fits;
    best_.evaluated = count_;
    return best_;
  }

private:
  Result<PlacedGathers> evaluated(ChunkGathers gathers) {
    Result<IterationPlan> plan =
        collective::with_chunk_gathers(schedule_, scenario_, gathers, arrangement_);
    if (!plan) return plan.refusal();
    const Result<SimulatedIteration> ran = simulate_iteration(*plan);
    if (!ran) return ran.refusal();
    ++count_;
    const collective::IterationTimes times{ran->lowered, ran->times};
    const PeakMemory memory = peak_of(*plan, times);
    PlacedGathers made;
    made.gathers = std::move(gathers);
    made.spans = spans_of(*plan, *ran);
    made.makespan = times.makespan();
    made.peak = memory.peak;
    made.fits = memory.fits();
    made.bound = bound_of_overlaps(*plan);
    return made;
  }

  bool take(ChunkGathers gathers) {
    const Result<PlacedGathers> found = evaluated(std::move(gathers));
    if (!found || !is_better_placed(*found)) return false;
    best_ = *found;
    return true;
  }

  /// Of two that are as fast the one that holds less.
  [[nodiscard]] bool is_better_placed(const PlacedGathers& found) const {
    if (found.fits != best_.fits) return found.fits;
    if (!found.fits) return found.peak < best_.peak;
    return std::pair{found.makespan, found.peak} < std::pair{best_.makespan, best_.peak};
  }

  bool improve_all() {
    bool gains = false;
    for (const DeviceId device : schedule_.device_ids())
      for (std::size_t g = 0; g < best_.gathers[device].size() && count_ < evaluations_; ++g)
        gains = move(device, g) || keep(device, g) || give_up(device, g) || gains;
    return gains;
  }

  /// Where it may be asked for at the earliest: after the gather before of the same chunk.
  [[nodiscard]] std::size_t earliest(DeviceId device, const ChunkGather& own) const {
    std::size_t place = 0;
    for (const ChunkGather& each : best_.gathers[device])
      if (each.chunk == own.chunk && each.last < own.first) place = std::max(place, each.last + 1);
    return place;
  }

  static void sort(std::vector<ChunkGather>& gathers) {
    std::ranges::stable_sort(gathers, {}, [](const ChunkGather& each) {
      return std::pair{each.issue, each.first};
    });
  }

  bool move(DeviceId device, std::size_t g) {
    const ChunkGather own = best_.gathers[device][g];
    const std::size_t least = earliest(device, own);
    for (const std::size_t by : {1U, 2U, 4U, 8U}) {
      for (const bool is_later : {false, true}) {
        const std::size_t issue = is_later ? own.issue + by : own.issue - std::min(own.issue, by);
        if (issue < least || issue > own.first || issue == own.issue) continue;
        ChunkGathers gathers = best_.gathers;
        gathers[device][g].issue = issue;
        sort(gathers[device]);
        if (take(std::move(gathers))) return true;
      }
    }
    return false;
  }

  /// Until the next use, which then needs none.
  bool keep(DeviceId device, std::size_t g) {
    ChunkGathers gathers = best_.gathers;
    std::vector<ChunkGather>& own = gathers[device];
    std::size_t next = own.size();
    for (std::size_t i = 0; i < own.size(); ++i)
      if (own[i].chunk == own[g].chunk && own[i].first > own[g].last &&
          (next == own.size() || own[i].first < own[next].first))
        next = i;
    if (next == own.size()) return false;
    own[g].last = own[next].last;
    own.erase(own.begin() + static_cast<std::ptrdiff_t>(next));
    return take(std::move(gathers));
  }

  /// Between the two of its uses that are the furthest apart.
  bool give_up(DeviceId device, std::size_t g) {
    ChunkGathers gathers = best_.gathers;
    ChunkGather& own = gathers[device][g];
    const std::span<const Block> row = schedule_.row(ReplicaId{0}, device);
    std::size_t before = own.first, begin = own.first, end = own.first;
    for (std::size_t b = own.first + 1; b <= own.last; ++b) {
      if (row[b].chunk != own.chunk) continue;
      if (b - before > std::max<std::size_t>(1, end - begin)) begin = before, end = b;
      before = b;
    }
    if (begin == end) return false;
    const ChunkGather later{own.chunk, begin + 1, end, own.last};
    own.last = begin;
    gathers[device].push_back(later);
    sort(gathers[device]);
    return take(std::move(gathers));
  }

  const Schedule& schedule_;
  const Scenario& scenario_;
  Arrangement arrangement_;
  std::size_t evaluations_, count_ = 0;
  PlacedGathers best_;
};

}  // namespace

Result<PlacedGathers> place_gathers(const Schedule& schedule, const Scenario& scenario,
                                    Arrangement arrangement, std::size_t evaluations) {
  const Parallel& parallel = scenario.parallel;
  if (parallel.gradient_sync == GradientSync::zero3 && parallel.shard > 1)
    return GatherPlacer{schedule, scenario, arrangement, evaluations}.run();
  Result<Plan> plan = plan::try_lower(schedule, scenario, arrangement);
  if (!plan) return plan.refusal();
  Result<OpTimes> times = sim::try_simulate(*plan);
  if (!times) return times.refusal();
  PlacedGathers made;
  made.spans = spans_of_blocks(schedule, scenario, *plan, *times);
  made.makespan = std::ranges::max_element(*times, {}, &OpTime::end)->end;
  made.evaluated = 1;
  return made;
}

}  // namespace longhaul::planner
