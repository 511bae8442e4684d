// Plans under weather, by hand: exact timestamps.
#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/plans.hpp"
#include "support/weather.hpp"

namespace longhaul::sim {
namespace {

using testing::find;
using testing::same;
using testing::trace_of;
using testing::two_sites;

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
