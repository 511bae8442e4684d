#include "collective/partition/communication_classes.hpp"

#include <gtest/gtest.h>

#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using testing::centauri_toy;
using testing::planned_iteration;

// Gathers of the first, the second and the first again; scatters of the second and the first.
TEST(CommunicationClasses, TellTiersAndWhatRunsBeside) {
  const auto classes = communication_classes(planned_iteration(centauri_toy(), "zero3"));
  ASSERT_EQ(classes.size(), 5U);
  EXPECT_EQ(classes[0].tier, Tier::operation);
  EXPECT_EQ(classes[0].beside, "first");
  EXPECT_EQ(classes[0].computation, 2ms);
  EXPECT_EQ(classes[0].independent, 0ms);
  EXPECT_EQ(classes[1].beside, "second");
  EXPECT_EQ(classes[1].independent, 2ms);
  EXPECT_EQ(classes[2].tier, Tier::layer);
  EXPECT_EQ(classes[2].beside, "first");
  EXPECT_EQ(classes[2].work, BlockKind::D);
  EXPECT_EQ(classes.back().kind, CollectiveKind::reduce_scatter);
  EXPECT_EQ(classes.back().independent, 0ms);
}

TEST(CommunicationClasses, JoinThoseOfOneKind) {
  const Scenario scenario =
      scenario::load_scenario(testing::kShippedScenarios / "centauri-fsdp.toml", {});
  const auto plan = planned_iteration(scenario, "zero3");
  const auto classes = communication_classes(plan);
  std::size_t count = 0;
  for (const CommunicationClass& each : classes) count += each.all.size();
  EXPECT_EQ(count, plan.stages[DeviceId{0}].communications.size());
  EXPECT_LE(classes.size(), 20U);
  const auto ddp = communication_classes(planned_iteration(centauri_toy(), "ddp"));
  ASSERT_EQ(ddp.size(), 1U);
  EXPECT_EQ(ddp.front().tier, Tier::model);
}

}  // namespace
}  // namespace longhaul::collective
