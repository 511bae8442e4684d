#include "planner/collectives/grain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/lowering/count_ops.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/search/makespan.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

using ::testing::HasSubstr;

/// Two stages of so many replicas, which take turns in two datacenters.
Scenario replicated(int replicas) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.parallel.replicas = replicas;
  scenario.datacenters = {{"west", {}}, {"east", {}}};
  scenario.placement.clear();
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    scenario.placement.push_back(DatacenterId{rank / 2 % 2});
  for (const int from : {0, 1})
    scenario.links.push_back(
        {DatacenterId{from}, DatacenterId{1 - from}, Duration{1000}, 80_Gbps, Sharing::pair});
  return scenario;
}

TEST(GrainOfPlans, IsStepsUpToTheLimitAndWholeBeyond) {
  const Scenario scenario = replicated(3);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  // 3 replicas of 8 blocks and 4 messages; 2 stages of a gather and a scatter of 3 * 2 messages.
  EXPECT_EQ(plan::count_ops(schedule, scenario), 3U * (8 + 2 * 4) + 2 * 2 * 2 * 6);
  EXPECT_EQ(grain_of(schedule, scenario), Grain::steps);
  EXPECT_EQ(grain_of(schedule, scenario, 96), Grain::steps);
  EXPECT_EQ(grain_of(schedule, scenario, 95), Grain::whole);
  const Plan steps = lower_reported(schedule, scenario, Arrangement::decoupled, 96).plan;
  EXPECT_EQ(steps.ops.size(), 96U);
  EXPECT_EQ(steps.stepped.size(), 4U);
  const ReportedPlan whole = lower_reported(schedule, scenario, Arrangement::decoupled, 95);
  EXPECT_EQ(whole.grain, Grain::whole);
  EXPECT_TRUE(whole.plan.stepped.empty());
  EXPECT_EQ(whole.plan.collectives.size(), 4U);
}

TEST(GrainOfPlans, OfWholeCollectivesHasTheTimeThatTheyTakeAlone) {
  const Scenario scenario = replicated(2);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  const auto last = [&](std::size_t most_ops) {
    const ReportedPlan made = lower_reported(schedule, scenario, Arrangement::decoupled, most_ops);
    Duration end{};
    for (const OpTime& time : sim::simulate(made.plan)) end = std::max(end, time.end);
    return end;
  };
  // Each stage has links of its own, and its members begin together: both grains take as long.
  EXPECT_EQ(last(0), last(kMostOpsInSteps));
  EXPECT_EQ(last(0), makespan_of(schedule, scenario));
}

TEST(GrainOfPlans, IsStepsWithoutCollectivesAndNamesEstimates) {
  Scenario scenario = replicated(2);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  scenario.parallel.gradient_sync = GradientSync::none;
  EXPECT_EQ(grain_of(schedule, scenario, 0), Grain::steps);
  scenario.parallel.gradient_sync = GradientSync::two_datacenter;
  EXPECT_EQ(grain_of(schedule, scenario), Grain::estimate);
  EXPECT_EQ(grain_of(schedule, scenario, 0), Grain::estimate);
  scenario.costs.weights.assign(2, Bytes{0});
  EXPECT_EQ(grain_of(schedule, scenario), Grain::steps);
}

TEST(GrainOfPlans, RefusesCollectivesThatAreTooLargeToBePlayed) {
  const Scenario scenario = replicated(3200);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  EXPECT_EQ(grain_of(schedule, scenario), Grain::whole);
  const auto made = try_lower_reported(schedule, scenario, Arrangement::decoupled);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.refusal().reason,
              HasSubstr("all-gather of 3200 ranks has 10236800 messages (more than 10000000"));
}

}  // namespace
}  // namespace longhaul::planner
