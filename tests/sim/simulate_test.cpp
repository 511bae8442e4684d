// Exact timestamps of small hand-computed plans.
#include "sim/simulate.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/lowering/collectives.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "schedule/generators/generate.hpp"
#include "support/plans.hpp"
#include "support/scenarios.hpp"
#include "support/weather.hpp"
#include "trace/report/report_rows.hpp"

namespace longhaul::sim {
namespace {

using testing::find;
using testing::same;
using testing::trace_of;
using testing::two_sites;

Duration last_end(const OpTimes& times) {
  Duration last{};
  for (const OpTime& time : times) last = std::max(last, time.end);
  return last;
}

/// One stage, one microbatch, two replicas in two datacenters, 1 ms and 1 Gbps apart.
Scenario replicas_apart() {
  Scenario scenario = uniform_scenario(1, 1);
  scenario.parallel.replicas = 2;
  scenario.datacenters = {{"a", {}}, {"b", {}}};
  scenario.placement = {DatacenterId{0}, DatacenterId{1}};
  scenario.links = {{DatacenterId{0}, DatacenterId{1}, 1ms, 1_Gbps, Sharing::pair},
                    {DatacenterId{1}, DatacenterId{0}, 1ms, 1_Gbps, Sharing::pair}};
  return scenario;
}

// Two stages, F = D = W = 100, B = 200, transfer 30, latency 50. GPipe with M = 2:
//   stage 0: F0 0..100, F1 100..200           B0 ...
//   link  : m0 100..130 arrives 180, m1 200..230 arrives 280
//   stage 1: F0 180..280, F1 280..380, B0 380..580, B1 580..780
//   back  : g0 580..610 arrives 660, g1 780..810 arrives 860
//   stage 0: B0 660..860, B1 860..1060
TEST(Simulate, TwoStagesWithTransferAndLatency) {
  const Scenario scenario = spread(uniform_scenario(2, 2), 2, Duration{50}, Duration{30});
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const OpTimes times = simulate(plan);
  const auto expect = [&](OpId id, int ready, int start, int end) {
    EXPECT_EQ(times[index(id)].ready, Duration{ready}) << to_text(plan, id);
    EXPECT_EQ(times[index(id)].start, Duration{start}) << to_text(plan, id);
    EXPECT_EQ(times[index(id)].end, Duration{end}) << to_text(plan, id);
  };
  expect(testing::find(plan, 0, OpKind::compute, BlockKind::F, 1), 0, 100, 200);
  expect(testing::find(plan, 0, OpKind::send, BlockKind::F, 0), 100, 100, 130);
  expect(testing::find(plan, 1, OpKind::recv, BlockKind::F, 0), 0, 100, 180);
  expect(testing::find(plan, 1, OpKind::compute, BlockKind::F, 0), 180, 180, 280);
  expect(testing::find(plan, 1, OpKind::compute, BlockKind::F, 1), 280, 280, 380);
  expect(testing::find(plan, 1, OpKind::compute, BlockKind::B, 1), 0, 580, 780);
  expect(testing::find(plan, 0, OpKind::recv, BlockKind::B, 0), 0, 580, 660);
  expect(testing::find(plan, 0, OpKind::compute, BlockKind::B, 1), 860, 860, 1060);
}

TEST(Simulate, NamesWhatAnOpWaitedForLast) {
  const Scenario scenario = spread(uniform_scenario(2, 2), 2, Duration{50}, Duration{150});
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const OpTimes times = simulate(plan);
  const auto bound = [&](OpId id) {
    return std::pair{times[index(id)].bound_by, times[index(id)].bound_kind};
  };
  const OpId f0 = testing::find(plan, 0, OpKind::compute, BlockKind::F, 0);
  const OpId f1 = testing::find(plan, 0, OpKind::compute, BlockKind::F, 1);
  const OpId m0 = testing::find(plan, 0, OpKind::send, BlockKind::F, 0);
  const OpId m1 = testing::find(plan, 0, OpKind::send, BlockKind::F, 1);
  const OpId arrival = testing::find(plan, 1, OpKind::recv, BlockKind::F, 0);
  EXPECT_EQ(bound(f0), std::pair(kNone<OpId>, BoundKind::start));
  EXPECT_EQ(bound(f1), std::pair(f0, BoundKind::lane));
  EXPECT_EQ(bound(m0), std::pair(f0, BoundKind::dependency));
  EXPECT_EQ(bound(m1), std::pair(m0, BoundKind::resource));  // ready at 200, link free at 250
  EXPECT_EQ(bound(arrival), std::pair(m0, BoundKind::dependency));
  EXPECT_EQ(bound(testing::find(plan, 1, OpKind::compute, BlockKind::F, 0)),
            std::pair(arrival, BoundKind::dependency));
}

// Two replicas of two stages cross one shared link: both first messages are ready at 100, the lower
// op id goes first (transfer 60, latency 10), the second waits until 160.
TEST(Simulate, SharedLinkServesInOrderOfReadinessThenOpId) {
  const Scenario scenario = testing::replicas_on_a_shared_link(2, Duration{10}, Duration{60});
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const OpTimes times = simulate(plan);
  const OpId first = testing::find(plan, 0, OpKind::send, BlockKind::F, 0);
  const OpId second = testing::find(plan, 2, OpKind::send, BlockKind::F, 0);
  EXPECT_EQ(times[index(first)].start, Duration{100});
  EXPECT_EQ(times[index(second)].start, Duration{160});
  EXPECT_EQ(times[index(second)].bound_by, first);
  EXPECT_EQ(times[index(second)].bound_kind, BoundKind::resource);
  EXPECT_EQ(times[index(OpId{plan.op(second).match})].end, Duration{230});
}

TEST(Simulate, StatedOrderOnASharedLinkOverridesReadiness) {
  const Scenario scenario = testing::replicas_on_a_shared_link(2, Duration{10}, Duration{60});
  Schedule schedule = schedule::generate("gpipe", scenario);
  const Block forward{};
  schedule.link_orders.push_back(
      {"link " + scenario.datacenters[0].name + ">" + scenario.datacenters[1].name,
       {{ReplicaId{1}, forward}, {ReplicaId{0}, forward}}});
  const Plan plan = plan::lower(schedule, scenario);
  const OpTimes times = simulate(plan);
  EXPECT_EQ(times[index(testing::find(plan, 2, OpKind::send, BlockKind::F, 0))].start,
            Duration{100});
  EXPECT_EQ(times[index(testing::find(plan, 0, OpKind::send, BlockKind::F, 0))].start,
            Duration{160});
}

// A resource of capacity 2 lets two of three transfers overlap.
TEST(Simulate, CapacityLetsSeveralHold) {
  const Scenario scenario = testing::replicas_on_a_shared_link(3, Duration{0}, Duration{60});
  Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  for (Resource& resource : plan.resources)
    if (resource.kind == ResourceKind::shared_link) resource.capacity = 2;
  const OpTimes times = simulate(plan);
  const auto start = [&](int rank) {
    return times[index(testing::find(plan, rank, OpKind::send, BlockKind::F, 0))].start;
  };
  EXPECT_EQ(start(0), Duration{100});
  EXPECT_EQ(start(2), Duration{100});
  EXPECT_EQ(start(4), Duration{160});
}

// The first in the order is ready at 150: no one after it begins before, though places are free.
TEST(Simulate, AStatedOrderHoldsInSeveralPlaces) {
  const Scenario scenario = testing::replicas_on_a_shared_link(3, Duration{0}, Duration{60});
  Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const auto send = [&](int rank) {
    return testing::find(plan, rank, OpKind::send, BlockKind::F, 0);
  };
  plan.ops[index(testing::find(plan, 4, OpKind::compute, BlockKind::F, 0))].duration =
      Duration{150};
  for (Resource& resource : plan.resources) {
    if (resource.kind != ResourceKind::shared_link || resource.name != "link dc0>dc1") continue;
    resource.capacity = 2;
    resource.order = {send(4), send(0), send(2)};
  }
  const OpTimes times = simulate(plan);
  EXPECT_EQ(times[index(send(4))].start, Duration{150});
  EXPECT_EQ(times[index(send(0))].start, Duration{150});
  EXPECT_EQ(times[index(send(0))].bound_by, send(4));
  EXPECT_EQ(times[index(send(0))].bound_kind, BoundKind::resource);
  EXPECT_EQ(times[index(send(2))].start, Duration{210});
}

// ZeRO-1 on two replicas, one stage, one microbatch. 8 MiB of weights over 1 Gbps and 1 ms:
// (n-1)/n = 1/2 of the bytes, 33554432 ns, and one latency: 34554432 ns before the first F and
// again after the last B (300 ns of compute between them).
TEST(Simulate, ZeroOneGathersBeforeAndScattersBehind) {
  const Scenario scenario = replicas_apart();
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  const OpTimes times = simulate(plan);
  EXPECT_EQ(last_end(times), Duration{2 * 34'554'432 + 300});
  EXPECT_EQ(times[index(testing::find(plan, 1, OpKind::compute, BlockKind::F, 0))].start,
            Duration{34'554'432});
}

// Two chunks on one device: their gathers take turns. 4 MiB each over
// 1 Gbps and 1 ms: half of the bytes, 16777216 ns, and one latency.
TEST(Simulate, CollectivesOfOneRankTakeTurns) {
  Scenario scenario = replicas_apart();
  const Plan plan = plan::lower(schedule::generate("zbv", scenario), scenario);
  const OpTimes times = simulate(plan);
  constexpr Duration kGather{16'777'216 + 1'000'000};
  const auto of_rank_1 = [&](const SteppedCollective& gather) {
    return times[index(gather.receives[0])];  // of a ring of two: from member 0
  };
  EXPECT_EQ(of_rank_1(plan.stepped[0]).end, kGather);
  const OpTime& second = of_rank_1(plan.stepped[1]);
  EXPECT_EQ(second.start, kGather);
  EXPECT_EQ(second.end, 2 * kGather);
}

// The ring runs over the nodes' interfaces: 500 Mbps are slower than the link.
TEST(Simulate, RingsTakeTheRateOfTheInterfaces) {
  Scenario scenario = replicas_apart();
  scenario.nodes = {{DatacenterId{1}, 1, Bandwidth{5e8}, Bandwidth::unlimited()}};
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  const SteppedCollective& gather = plan.stepped.front();
  EXPECT_EQ(plan.op(gather.sends[0]).duration, Duration{33'554'432});
  EXPECT_EQ(plan.op(gather.sends[1]).duration, Duration{67'108'864});  // out of the slow site
}

// CrossPipe appendix E: 2 latencies + bytes of the weights at the link's rate.
TEST(Simulate, TwoDatacenterEstimateOfAppendixE) {
  Scenario scenario = replicas_apart();
  scenario.parallel.gradient_sync = GradientSync::two_datacenter;
  const OpTimes times = simulate(plan::lower(schedule::generate("1f1b", scenario), scenario));
  EXPECT_EQ(last_end(times), Duration{300 + 2'000'000 + 67'108'864});
}

// Atlas footnote 1: 4 P (N - 1) / (N BW) with 2 P bytes of weights, and no latency. Of 8 MiB at 1
// Gbps: N = 2 sends 8 MiB, N = 3 4/3 of them, 11,184,810 bytes.
TEST(Simulate, AllReduceAtTheRateAloneOfFootnoteOne) {
  Scenario scenario = replicas_apart();
  scenario.parallel.gradient_sync = GradientSync::ring_rate;
  const auto last = [&] {
    return last_end(simulate(plan::lower(schedule::generate("1f1b", scenario), scenario)));
  };
  EXPECT_EQ(last(), Duration{300 + 67'108'864});
  scenario.parallel.replicas = 3;
  scenario.placement.push_back(DatacenterId{1});
  EXPECT_EQ(last(), Duration{300 + 89'478'480});
}

TEST(Occupancy, CountsHoldsOfEveryResource) {
  const Scenario scenario = spread(uniform_scenario(2, 3), 2, Duration{50}, Duration{30});
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  std::map<std::string, plan::ResourceUse> uses;
  for (const plan::ResourceUse& use : plan::occupancy(plan, simulate(plan))) uses[use.name] = use;
  EXPECT_EQ(uses.at("link 0>1").busy, Duration{90});
  EXPECT_EQ(uses.at("link 0>1").holds, 3u);
  EXPECT_EQ(uses.at("device 1").busy, Duration{900});
  EXPECT_EQ(uses.at("device 1").holds, 6u);
}

// A gather and a scatter of 8 MiB among two: half of them each way and each time, 33.6 ms at 1
// Gbps.
TEST(Occupancy, CountsTheStepsOfCollectives) {
  const Scenario scenario = replicas_apart();
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  const OpTimes times = simulate(plan);
  int links = 0;
  for (const plan::ResourceUse& use : plan::occupancy(plan, times)) {
    if (use.kind != ResourceKind::link) continue;
    EXPECT_EQ(use.busy, Duration{2 * 33'554'432}) << use.name;
    EXPECT_EQ(use.holds, 2U) << use.name;
    ++links;
  }
  EXPECT_EQ(links, 2);
  const trace::IterationReport report =
      trace::report_rows(plan::PlanRows{plan, times}, 0, plan.datacenters);
  EXPECT_EQ(report.wan_busy_ns, 4 * 33'554'432);
  EXPECT_EQ(report.legs[static_cast<std::size_t>(MessageLeg::whole)].messages, 0);
}

TEST(Simulate, NamesTheCycleOfADeadlock) {
  const Scenario scenario = spread(uniform_scenario(2, 1), 2, Duration{0}, Duration{0});
  Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  // Stage 0's F now waits for the gradient that depends on it.
  Op& forward = plan.ops[index(testing::find(plan, 0, OpKind::compute, BlockKind::F, 0))];
  plan.add_after(forward, testing::find(plan, 0, OpKind::recv, BlockKind::B, 0));
  try {
    (void)simulate(plan);
    FAIL() << "a cyclic plan was simulated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::run_failed);
    const std::string text = error.what();
    EXPECT_NE(text.find("rank 0 (dc0, stage 0): F(chunk 0, microbatch 0)"), std::string::npos)
        << text;
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
  }
}

// Under weather, by hand.

// Two stages, F = 1 ms, B = 2 ms, a message takes 8 ms and 10 ms of latency. GPipe with M = 2, the
// way there at half the rate and twice the latency from 13 ms on, out from 5 to 7 ms:
//   stage 0: F0 0..1, F1 1..2
//   link   : m0 1..5, out, 7..11 arrives 21; m1 11..13 (1/4), 13..25 (3/4 of 16) arrives 45
//   stage 1: F0 21..22, F1 45..46, B0 46..48, B1 48..50
//   back   : g0 48..56 arrives 66, g1 56..64 arrives 74
//   stage 0: B0 66..68, B1 74..76
Scenario stormy() {
  Scenario scenario = testing::two_sites();
  scenario.links[0].weather.trace =
      testing::trace_of({{0ms, 10ms, 1_Gbps}, {13ms, 20ms, 500_Mbps}});
  scenario.links[0].weather.outages = {{5ms, 2ms}};
  return scenario;
}

TEST(SimulateWeather, AStepAndAnOutageMoveWhatComesBehind) {
  const Scenario scenario = stormy();
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const plan::Weather weather{plan, scenario};
  const OpTimes times = simulate(plan, {&weather, 0, 0ms});
  const auto expect = [&](OpId id, Duration start, Duration end) {
    EXPECT_EQ(times[index(id)].start, start) << to_text(plan, id);
    EXPECT_EQ(times[index(id)].end, end) << to_text(plan, id);
  };
  expect(testing::find(plan, 0, OpKind::send, BlockKind::F, 0), 1ms, 11ms);
  expect(testing::find(plan, 1, OpKind::recv, BlockKind::F, 0), 1ms, 21ms);
  expect(testing::find(plan, 0, OpKind::send, BlockKind::F, 1), 11ms, 25ms);
  expect(testing::find(plan, 1, OpKind::recv, BlockKind::F, 1), 11ms, 45ms);
  expect(testing::find(plan, 1, OpKind::compute, BlockKind::B, 0), 46ms, 48ms);
  expect(testing::find(plan, 0, OpKind::recv, BlockKind::B, 0), 48ms, 66ms);
  expect(testing::find(plan, 0, OpKind::compute, BlockKind::B, 1), 74ms, 76ms);
}

TEST(SimulateWeather, ALaterIterationMeetsTheWeatherOfItsTime) {
  const Scenario scenario = stormy();
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const plan::Weather weather{plan, scenario};
  const OpTimes times = simulate(plan, {&weather, 1, 76ms});
  // All of it lies after the step: m0 1..17 arrives 37, m1 17..33 arrives 53.
  EXPECT_EQ(times[index(testing::find(plan, 1, OpKind::recv, BlockKind::F, 0))].end, 37ms);
  EXPECT_EQ(times[index(testing::find(plan, 1, OpKind::recv, BlockKind::F, 1))].end, 53ms);
}

TEST(SimulateWeather, ASharedLinkIsHeldForAsLongAsTheWeatherTakes) {
  Scenario scenario = stormy();
  for (Link& link : scenario.links) link.sharing = Sharing::datacenter;
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario.parallel.microbatches = 1;
  scenario.placement = {DatacenterId{0}, DatacenterId{1}, DatacenterId{0}, DatacenterId{1}};
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const plan::Weather weather{plan, scenario};
  const OpTimes times = simulate(plan, {&weather, 0, 0ms});
  // As m0 and m1 above, now of two replicas.
  EXPECT_EQ(times[index(testing::find(plan, 0, OpKind::send, BlockKind::F, 0))].end, 11ms);
  EXPECT_EQ(times[index(testing::find(plan, 2, OpKind::send, BlockKind::F, 0))].start, 11ms);
  EXPECT_EQ(times[index(testing::find(plan, 2, OpKind::send, BlockKind::F, 0))].end, 25ms);
}

TEST(SimulateWeather, AnotherSeedIsOtherWeather) {
  Scenario scenario = testing::two_sites(8);
  for (Link& link : scenario.links) {
    link.jitter = {0.3, 0.3, 0};
    link.weather.loss = {0.3, 100ms};
  }
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const plan::Weather weather{plan, scenario};
  const OpTimes first = simulate(plan, {&weather, 0, 0ms});
  Scenario other = scenario;
  other.run.seed = 2;
  const plan::Weather another{plan, other};
  EXPECT_FALSE(testing::same(simulate(plan, {&another, 0, 0ms}), first));
  EXPECT_FALSE(testing::same(simulate(plan, {&weather, 1, 0ms}), first));
  // A seed of the link's own leaves its jitter where it is when the run's changes.
  for (Scenario* each : {&scenario, &other}) {
    for (Link& link : each->links) {
      link.jitter.seed = 7;
      link.weather.loss = {};
    }
  }
  const plan::Weather one{plan, scenario};
  const plan::Weather two{plan, other};
  EXPECT_TRUE(testing::same(simulate(plan, {&one, 0, 0ms}), simulate(plan, {&two, 0, 0ms})));
}

TEST(SimulateWeather, IsTheSameAtEveryTimeScale) {
  Scenario scenario = stormy();
  scenario.run.time_scale = 0.5;
  const Scenario played = scenario.as_played();
  const Plan plan = plan::lower(schedule::generate("gpipe", played), played);
  const plan::Weather weather{plan, played};
  const OpTimes times = simulate(plan, {&weather, 0, 0ms});
  EXPECT_EQ(times[index(testing::find(plan, 1, OpKind::recv, BlockKind::F, 1))].end, 22'500us);
}

}  // namespace

}  // namespace longhaul::sim
