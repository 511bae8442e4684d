// Estimates of collectives under weather, by hand. Collectives that are messages meet it as all
// messages do.
#include <gtest/gtest.h>

#include "plan/link_model/weather.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "support/weather.hpp"

namespace longhaul {
namespace {

using testing::trace_of;

/// One stage, two replicas in two datacenters: the gradients' 2 MB take 16 ms at the slowest rate.
Scenario replicas_apart() {
  Scenario scenario = uniform_scenario(1, 1, 1ms);
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::ring_rate;
  scenario.datacenters = {{"a", {}}, {"b", {}}};
  scenario.placement = {DatacenterId{0}, DatacenterId{1}};
  scenario.costs.weights = {Bytes{2'000'000}};
  for (const int from : {0, 1})
    scenario.links.push_back(
        {DatacenterId{from}, DatacenterId{1 - from}, 10ms, 1_Gbps, Sharing::pair});
  return scenario;
}

TEST(WeatherOfCollectives, AnEstimateGoesOnAtThePaceOfItsRing) {
  Scenario scenario = replicas_apart();
  scenario.links[0].weather.trace = testing::trace_of({{0ms, 10ms, 1_Gbps}, {8ms, 20ms, 500_Mbps}});
  scenario.links[1].weather.outages = {{100ms, 5ms}};
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const plan::Weather weather{plan, scenario};
  const OpId member = plan.collectives.at(0).at(0);
  ASSERT_EQ(plan.op(member).duration, 16ms);
  EXPECT_EQ(weather.collective(member, 0, -1h), 16ms);
  EXPECT_EQ(weather.collective(member, 0, 0ms), 8ms + 16ms);  // half, half at half the pace
  EXPECT_EQ(weather.collective(member, 0, 20ms), 32ms);
  EXPECT_EQ(weather.collective(member, 0, 80ms), 32ms + 5ms);  // either direction stops it
  EXPECT_EQ(weather.collective(member, 0, 101ms), 4ms + 32ms);
  EXPECT_EQ(weather.collective(plan.collectives[0][1], 0, 101ms), 36ms);
  EXPECT_EQ(weather.outage_left(member, 101ms), 4ms);
  EXPECT_EQ(weather.outage_left(member, 99ms), 0ms);
}

TEST(WeatherOfCollectives, JitterAndLossLeaveEstimatesAlone) {
  Scenario scenario = replicas_apart();
  scenario.links[0].jitter = {0.3, 0.3, 0};
  scenario.links[0].weather.loss = {1, 1s};
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const plan::Weather weather{plan, scenario};
  EXPECT_TRUE(weather.calm());
  EXPECT_EQ(weather.collective(plan.collectives[0][0], 3, 5ms), 16ms);
}

}  // namespace
}  // namespace longhaul
