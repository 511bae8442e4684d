#include "planner/overlap/evaluate_overlap.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/overlap/pieces.hpp"
#include "plan/lowering/prove_collectives.hpp"
#include "planner/collectives/time_alone.hpp"
#include "planner/search/makespan.hpp"
#include "sim/simulate.hpp"
#include "support/overlaps.hpp"

namespace longhaul::planner {
namespace {

using collective::IterationPlan;
using collective::OperationId;
using collective::StageWork;
using collective::Traffic;
using testing::centauri_toy;
using testing::planned_iteration;

OverlapResult evaluated(const Scenario& scenario, const char* overlap,
                        const char* schedule = "gpipe") {
  return evaluate_overlap(testing::overlap_named(overlap), schedule::generate(schedule, scenario),
                          scenario)
      .or_throw();
}

Duration makespan(const IterationPlan& plan) {
  const SimulatedIteration ran = simulate_iteration(plan).or_throw();
  return collective::IterationTimes{ran.lowered, ran.times}.makespan();
}

// One collective at a time on each port: an op of each member takes as long as its messages.
TEST(EvaluateOverlap, TakesTheSameByWholeCollectivesOfTheToy) {
  for (const auto& [overlap, expected] : {std::pair{"serial", 17ms}, {"zero3", 14ms}}) {
    const IterationPlan plan = planned_iteration(centauri_toy(), overlap);
    const SimulatedIteration ran = simulate_whole_collectives(plan).or_throw();
    EXPECT_EQ(ran.grain, Grain::whole);
    const collective::IterationTimes times{ran.lowered, ran.times};
    EXPECT_EQ(times.makespan(), expected) << overlap;
    EXPECT_EQ(times.exposure(Rank{0}).total(), 5ms) << overlap;
  }
}

Scenario three_sites(const std::vector<std::string>& set) {
  return scenario::load_scenario(testing::in_checkout("benchmarks/scenarios/three-sites.toml"),
                                 set);
}

/// Two pipelines that relay each other's pieces over the WAN: operators and relays alone take what
/// the schedule takes, and sums beside them no less.
TEST(EvaluateOverlap, LeavesTurnsOnTheWanAsTheyAre) {
  const std::vector<std::string> few{"parallel.microbatches=4"},
      none{"parallel.microbatches=4", "parallel.gradient_sync=none"};
  const Scenario without = three_sites(none), with = three_sites(few);
  const Schedule turns = schedule::generate("atlas", without);
  ASSERT_EQ(turns.cell, 2);
  const Duration alone = makespan_of(turns, without);
  EXPECT_NE(alone, makespan_of(schedule::generate("1f1b", without), without));
  EXPECT_EQ(makespan(planned_iteration(without, "serial", "atlas")), alone);
  const Duration serial = makespan(planned_iteration(with, "serial", "atlas"));
  EXPECT_GT(serial, alone);
  Duration least = serial;
  for (const collective::Overlap& overlap : collective::overlaps()) {
    const Result<OverlapResult> result = evaluate_overlap(overlap, turns, with);
    if (!result) continue;
    EXPECT_GE(result->makespan, result->bound.lower_bound) << overlap.name;
    least = std::min(least, result->makespan);
  }
  EXPECT_LT(least, serial) << "sums inside a site hide beside blocks, whatever crosses the WAN";
}

/// Whole collectives of all ranks together keep them the same: one is laid out for all.
TEST(EvaluateOverlap, TakesTheSameByWholeCollectivesOfOneRankForAll) {
  const Scenario four = centauri_toy({"parallel.replicas=4", "parallel.shard=4", "node.gpus=2",
                                      "node.internal=500MB/s", "parallel.microbatches=2"});
  const plan::TimeAlone alone = time_alone(four);
  for (const char* overlap : {"serial", "zero3", "fsdp2", "coconet", "dist-einsum"}) {
    SCOPED_TRACE(overlap);
    const IterationPlan plan = planned_iteration(four, overlap);
    const auto lowered = [&](collective::SameRanks same) {
      return collective::lower_whole_collectives(plan, alone, same).or_throw();
    };
    const collective::LoweredIteration each = lowered(collective::SameRanks::each);
    const collective::LoweredIteration once = lowered(collective::SameRanks::once);
    EXPECT_LT(once.plan.ops.size() * 3, each.plan.ops.size());
    const OpTimes of_each = sim::simulate(each.plan), of_once = sim::simulate(once.plan);
    const collective::IterationTimes all{each, of_each}, few{once, of_once};
    EXPECT_EQ(few.makespan(), all.makespan());
    for (const Rank rank : ids<Rank>(4)) {
      EXPECT_EQ(few.exposure(rank).communication, all.exposure(rank).communication);
      EXPECT_EQ(few.exposure(rank).exposed, all.exposure(rank).exposed);
      for (std::uint32_t place = 0; place < plan.stages[DeviceId{0}].order.size(); ++place)
        ASSERT_EQ(few.operation(rank, place).end, all.operation(rank, place).end) << place;
    }
  }
}

OperationId operation_of(const StageWork& work, BlockKind kind, int place) {
  for (const OperationId id : work.order)
    if (work.operations[id].work == kind && work.operations[id].place == place) return id;
  return kNone<OperationId>;
}

// Worked in docs/overlap.md.
TEST(EvaluateOverlap, TakesTheTimesThatTheToyTakesByHand) {
  const OverlapResult serial = evaluated(centauri_toy(), "serial");
  EXPECT_EQ(serial.makespan, 17ms);
  EXPECT_EQ(serial.exposure.total(), 5ms);
  EXPECT_EQ(serial.exposure.total_exposed(), 5ms);
  EXPECT_DOUBLE_EQ(serial.alpha, 5.0 / 17);
  EXPECT_DOUBLE_EQ(serial.speedup_bound(), 17.0 / 12);
  const OverlapResult zero3 = evaluated(centauri_toy(), "zero3");
  EXPECT_EQ(zero3.makespan, 14ms);
  EXPECT_EQ(zero3.exposure.total_exposed(), 2ms);
  EXPECT_EQ(zero3.bound.lower_bound, 12ms);
  EXPECT_DOUBLE_EQ(zero3.gap(), 1.0 / 6);
}

TEST(EvaluateOverlap, GainsByWBeforeDAndByPieces) {
  IterationPlan plan = planned_iteration(centauri_toy(), "zero3");
  StageWork& work = plan.stages[DeviceId{0}];
  collective::move_before(work, operation_of(work, BlockKind::W, 0),
                          operation_of(work, BlockKind::D, 0));
  EXPECT_EQ(makespan(plan), 13ms);
  collective::cut_with_operation(work, work.issue.front(), 2, {});
  EXPECT_EQ(makespan(plan), 12'500us);
}

// Nothing is communicated but between stages: the iteration is that of the schedule.
TEST(EvaluateOverlap, IsTheScheduleWithoutCollectives) {
  Scenario scenario =
      centauri_toy({"parallel.stages=2", "parallel.microbatches=4", "parallel.replicas=1",
                    "parallel.shard=1", "costs.message=1MB"});
  for (const std::string& schedule : schedule::static_schedule_names()) {
    const Schedule made = schedule::generate(schedule, scenario);
    if (made.copies > 1) continue;
    const Duration expected = makespan_of(made, scenario);
    for (const char* overlap : {"serial", "zero1", "fsdp2"})
      EXPECT_EQ(evaluated(scenario, overlap, schedule.c_str()).makespan, expected)
          << schedule << ' ' << overlap;
  }
}

/// Of every overlap on these: two levels, copies, stages, tensor ranks.
std::vector<Scenario> several() {
  const std::vector<std::string> small{"model.layers=3", "model.microbatch_size=1", "node.gpus=2",
                                       "datacenter.gpus=64"};
  const auto with = [&](std::vector<std::string> set) {
    set.insert(set.end(), small.begin(), small.end());
    return scenario::load_scenario(testing::kShippedScenarios / "centauri-fsdp-dp.toml", set);
  };
  return {with({"parallel.replicas=4", "parallel.shard=4"}),
          with({"parallel.replicas=6", "parallel.shard=2", "parallel.microbatches=2"}),
          with({"parallel.replicas=2", "parallel.shard=2", "parallel.tensor=2",
                "parallel.microbatches=3", "parallel.stages=3"}),
          with({"parallel.replicas=4", "parallel.shard=2", "parallel.tensor=2",
                "parallel.sequence_parallel=true", "parallel.microbatches=4", "parallel.stages=2",
                "parallel.prefetch=memory", "memory.capacity=60GB"})};
}

/// Of one rank, by kind, out of the ops alone: what lies between neighbouring events.
struct Counted {
  collective::TimeByTraffic hidden{}, exposed{};
};
Counted counted(const SimulatedIteration& ran, Rank rank) {
  const Plan& plan = ran.lowered.plan;
  struct Interval {
    Duration start, end;
    int kind;  ///< -1: computation
  };
  std::vector<Interval> all;
  std::map<std::size_t, Interval> parts;  // by collective
  std::vector<Duration> events;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (plan.lanes[index(op.lane)].rank != rank) continue;
    const auto [start, end] = std::pair{ran.times[i].start, ran.times[i].end};
    events.insert(events.end(), {start, end});
    if (op.kind == OpKind::compute) {
      all.push_back({start, end, -1});
    } else if (!is_step(op)) {
      all.push_back({start, end, static_cast<int>(Traffic::pp)});
    } else {
      const std::size_t c = stepped_of(op);
      const int kind = static_cast<int>(ran.lowered.communication_of[c].traffic);
      Interval& part = parts.try_emplace(c, Interval{start, end, kind}).first->second;
      part = {std::min(part.start, start), std::max(part.end, end), kind};
    }
  }
  for (const auto& [c, part] : parts) all.push_back(part);
  std::ranges::sort(events);
  Counted counted;
  for (std::size_t e = 0; e + 1 < events.size(); ++e) {
    std::set<int> kinds;
    for (const Interval& each : all)
      if (each.start <= events[e] && each.end >= events[e + 1]) kinds.insert(each.kind);
    const bool busy = kinds.erase(-1) > 0;
    for (const int kind : kinds)
      (busy ? counted.hidden : counted.exposed)[to_size(kind)] += events[e + 1] - events[e];
  }
  return counted;
}

TEST(EvaluateOverlap, ExposedAndHiddenAddUpToCommunication) {
  for (const Scenario& scenario : several()) {
    for (const collective::Overlap& overlap : collective::overlaps()) {
      const IterationPlan plan = planned_iteration(scenario, overlap.name, "1f1b");
      const SimulatedIteration ran = simulate_all_ranks(plan).or_throw();
      const collective::IterationTimes times{ran.lowered, ran.times};
      const Rank rank{scenario.training_ranks() / 2};
      const collective::Exposure exposure = times.exposure(rank);
      const Counted by_events = counted(ran, rank);
      for (const Traffic traffic : every<Traffic>()) {
        const auto t = static_cast<std::size_t>(traffic);
        SCOPED_TRACE(std::string{overlap.name} + ' ' + to_string(traffic));
        EXPECT_EQ(exposure.exposed[t], by_events.exposed[t]);
        EXPECT_EQ(exposure.communication[t], by_events.exposed[t] + by_events.hidden[t]);
      }
    }
  }
}

TEST(EvaluateOverlap, MakesCollectivesThatAreRight) {
  for (const Scenario& scenario : several()) {
    for (const collective::Overlap& overlap : collective::overlaps()) {
      const IterationPlan plan = planned_iteration(scenario, overlap.name, "1f1b");
      const SimulatedIteration ran = simulate_all_ranks(plan).or_throw();
      const auto why = plan::why_collectives_wrong(ran.lowered.plan);
      EXPECT_FALSE(why) << overlap.name << ": " << why->reason;
      const OverlapResult result = evaluated(scenario, overlap.name, "1f1b");
      EXPECT_GE(result.makespan, result.bound.lower_bound) << overlap.name;
      EXPECT_GE(result.alpha, 0);
      EXPECT_GT(result.peak, Bytes{});
    }
  }
}

/// Bytes that leave all ranks, by kind.
std::map<Traffic, std::int64_t> sent(const SimulatedIteration& ran) {
  std::map<Traffic, std::int64_t> bytes;
  for (const Op& op : ran.lowered.plan.ops) {
    if (op.kind != OpKind::send) continue;
    const Traffic traffic =
        is_step(op) ? ran.lowered.communication_of[stepped_of(op)].traffic : Traffic::pp;
    bytes[traffic] += op.size.count();
  }
  return bytes;
}

// Centauri 5.2: FSDP over DP is 3/2 times the shards; here 3 W (s-1) over 2 W / s (c-1) a rank's.
TEST(EvaluateOverlap, SendsWhatTheFormulasSay) {
  const Scenario scenario = scenario::load_scenario(
      testing::kShippedScenarios / "centauri-fsdp-dp.toml",
      std::vector<std::string>{"model.layers=2", "parallel.microbatches=2"});
  const std::int64_t weights = scenario.costs.weights.front().count();
  const auto bytes = sent(simulate_all_ranks(planned_iteration(scenario, "zero3")).or_throw());
  EXPECT_EQ(bytes.at(Traffic::fsdp), 3 * 2 * weights * 15 * 3);
  EXPECT_EQ(bytes.at(Traffic::dp), 2 * weights * 2);
  EXPECT_EQ(
      static_cast<double>(bytes.at(Traffic::fsdp)) / 2 / static_cast<double>(bytes.at(Traffic::dp)),
      33.75);
  const auto whole = sent(simulate_all_ranks(planned_iteration(scenario, "zero1")).or_throw());
  EXPECT_EQ(whole.at(Traffic::dp), 2 * weights * 47);
  const auto each = sent(simulate_all_ranks(planned_iteration(scenario, "zero2")).or_throw());
  EXPECT_EQ(each.at(Traffic::dp), 3 * weights * 47);
}

// The first gather and the last scatter of each product show, a piece of them; in 1 ms of four.
TEST(EvaluateOverlap, CutsProductsAndTheirCollectives) {
  EXPECT_EQ(evaluated(centauri_toy({"overlap.max_chunks=2"}), "coconet").makespan, 14'500us);
  EXPECT_EQ(evaluated(centauri_toy({"overlap.max_chunks=4"}), "coconet").makespan, 13'250us);
  EXPECT_EQ(evaluated(centauri_toy(), "dist-einsum").makespan, 14'500us);
  EXPECT_EQ(
      evaluated(centauri_toy({"overlap.max_chunks=2", "overlap.split_overhead=100us"}), "coconet")
          .makespan,
      15us * 1000);
}

// Two operators of 2 ms on two tensor ranks; an all-reduce takes 2 ms, of the output after 4 ms, of
// the input's gradient after 12 ms, when one wgrad is left.
TEST(EvaluateOverlap, HidesTensorRanksSumsBesideWgrads) {
  std::string text = R"([parallel]
stages = 1
microbatches = 1
tensor = 2
[costs]
message = "1MB"
[[datacenter]]
name = "local"
[[node]]
datacenter = "local"
gpus = 2
device = "1GB/s"
)";
  for (const char* name : {"qkv", "output"})
    text += fmt::format(
        "[[operator]]\nname = \"{}\"\nkind = \"matmul\"\nforward = \"2ms\"\ndgrad = \"2ms\"\n"
        "wgrad = \"2ms\"\n",
        name);
  const Scenario scenario = scenario::parse_scenario(text, "tensor.toml");
  EXPECT_EQ(evaluated(scenario, "serial").makespan, 16ms);
  const OverlapResult megatron = evaluated(scenario, "megatron");
  EXPECT_EQ(megatron.makespan, 14ms);
  EXPECT_EQ(megatron.exposure.communication[static_cast<std::size_t>(Traffic::tp)], 4ms);
  EXPECT_EQ(megatron.exposure.exposed[static_cast<std::size_t>(Traffic::tp)], 2ms);
  Scenario sequence = scenario;
  sequence.parallel.sharding.sequence_parallel = true;
  // Five collectives of 1 ms, one after the other with 12 ms of operators.
  EXPECT_EQ(evaluated(sequence, "serial").makespan, 17ms);
}

// A bucket is summed as it fills: 2 ms each beside the other's dgrad and wgrad.
TEST(EvaluateOverlap, SumsBucketsAsTheyFill) {
  EXPECT_EQ(evaluated(centauri_toy({"parallel.bucket=2MB"}), "ddp").makespan, 14ms);
  EXPECT_EQ(evaluated(centauri_toy({"parallel.bucket=2MB"}), "zero1").makespan, 14ms);
  EXPECT_EQ(evaluated(centauri_toy(), "ddp").makespan, 16ms);
}

TEST(EvaluateOverlap, SendsLessBetweenNodesWhereBackwardsGatherInside) {
  const Scenario scenario = several()[0];
  const std::int64_t weights = scenario.costs.weights.front().count();
  const auto all = sent(simulate_all_ranks(planned_iteration(scenario, "zero3")).or_throw());
  EXPECT_EQ(all.at(Traffic::fsdp), 3 * weights * 3);
  const auto inside = sent(simulate_all_ranks(planned_iteration(scenario, "zeropp")).or_throw());
  EXPECT_EQ(inside.at(Traffic::fsdp), (3 + 2 * 1 + 3) * weights);
}

TEST(EvaluateOverlap, SendsBetweenStagesAndTensorRanks) {
  const Scenario scenario = several()[2];
  const auto bytes =
      sent(simulate_all_ranks(planned_iteration(scenario, "zero3", "1f1b")).or_throw());
  const std::int64_t whole = 2 * 2048 * 4096;  // 2 b s d
  EXPECT_EQ(bytes.at(Traffic::pp),
            2 * 2 * 2 * 3 * whole);  // ways, boundaries, replicas, microbatches
  EXPECT_EQ(bytes.at(Traffic::tp), 2 * 4 * 3 * 2 * 3 * whole);
}

/// The rank that holds most has a larger device than the one that lacks memory.
TEST(EvaluateOverlap, FitsWhereEachRankFitsItsOwnStagesDevice) {
  const auto on = [](const char* capacity) {
    const Scenario scenario =
        scenario::load_scenario(testing::kShippedScenarios / "centauri-real.toml",
                                std::vector{std::string{"memory.capacity="} + capacity});
    return evaluated(scenario, "fsdp2", "1f1b");
  };
  const OverlapResult tight = on("[\"1GB\", \"150kB\"]");
  EXPECT_FALSE(tight.fits());
  ASSERT_TRUE(tight.overflow);
  EXPECT_EQ(tight.overflow->capacity, Bytes{150'000});
  EXPECT_GT(tight.overflow->peak, Bytes{150'000});
  EXPECT_LT(tight.overflow->peak, tight.peak);
  EXPECT_TRUE(on("[\"1GB\", \"1GB\"]").fits());
}

/// Gathers of a unit ahead take memory; as many as there is room for stay within the capacity.
TEST(EvaluateOverlap, PrefetchesAsMemoryAllows) {
  const auto result = [](const char* prefetch, const char* capacity) {
    return evaluated(scenario::load_scenario(
                         testing::kShippedScenarios / "centauri-fsdp.toml",
                         std::vector<std::string>{std::string{"parallel.prefetch="} + prefetch,
                                                  std::string{"memory.capacity="} + capacity}),
                     "zero3");
  };
  const OverlapResult none = result("0", "80GB");
  const OverlapResult one = result("1", "80GB");
  const OverlapResult all = result("memory", "80GB");
  const OverlapResult few = result("memory", "23.6GB");
  EXPECT_GT(none.makespan, one.makespan);
  EXPECT_GT(one.makespan, all.makespan);
  EXPECT_LT(none.peak, one.peak);
  EXPECT_LT(one.peak, all.peak);
  EXPECT_TRUE(few.fits()) << few.peak.count();
  EXPECT_GE(few.makespan, all.makespan);
  EXPECT_FALSE(result("1", "20GB").fits());
}

}  // namespace
}  // namespace longhaul::planner
