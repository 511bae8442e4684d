#include "plan/rewrite/beside.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/check_extras.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "plan/rewrite/draft.hpp"
#include "schedule/generators/generate.hpp"
#include "support/collectives.hpp"
#include "support/same_plan.hpp"

namespace longhaul::plan {
namespace {

using testing::flat;
using ::testing::HasSubstr;
using testing::plan_difference;

Scenario two_sites_of_two() {
  return testing::scenario_of({.datacenters = 2,
                               .gpus = 2,
                               .link = "latency = \"20ns\"\nbandwidth = \"1GB/s\"\n"
                                       "sharing = \"datacenter\""});
}

Plan pipeline(const Scenario& scenario) {
  return lower(schedule::generate("1f1b", scenario), scenario);
}
Plan ring(const Scenario& scenario, CollectiveKind kind, std::int64_t bytes) {
  const auto collective = flat(kind, scenario.ranks(), Bytes{bytes}, CollectiveAlgorithm::ring);
  return lower_collective(collective, scenario).or_throw();
}

std::size_t holders(const Plan& plan, const std::string& resource) {
  for (const Resource& each : plan.resources)
    if (each.name == resource) return each.lanes;
  return 0;
}

TEST(Beside, HasTheOpsAndLanesOfBoth) {
  const Scenario scenario = two_sites_of_two();
  const Plan blocks = pipeline(scenario);
  const Plan gather = ring(scenario, CollectiveKind::all_gather, 400);
  const Plan both = beside(blocks, gather);
  EXPECT_EQ(both.ops.size(), blocks.ops.size() + gather.ops.size());
  EXPECT_FALSE(why_unsound(both).has_value());
  EXPECT_EQ(plan_difference(freeze(thaw(both)), both), "");
  for (std::size_t i = 0; i < both.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = both.op(id);
    if (op.kind == OpKind::compute) continue;
    EXPECT_EQ(both.op(OpId{op.match}).match, i);
    EXPECT_EQ(op.peer, both.rank_of(OpId{op.match}));
  }
}

TEST(Beside, ALinkOfOneNameIsOne) {
  const Scenario scenario = two_sites_of_two();
  const Plan blocks = pipeline(scenario);
  const Plan gather = ring(scenario, CollectiveKind::all_gather, 400);
  const Plan both = beside(blocks, gather);
  ASSERT_EQ(holders(blocks, "link dc0>dc1"), 1U);
  ASSERT_EQ(holders(gather, "link dc0>dc1"), 1U);
  EXPECT_EQ(holders(both, "link dc0>dc1"), 2U);
}

TEST(Beside, CollectivesKeepTheirSteps) {
  const Scenario scenario = two_sites_of_two();
  const Plan gather = ring(scenario, CollectiveKind::all_gather, 400);
  const Plan reduce = ring(scenario, CollectiveKind::all_reduce, 400);
  const Plan both = beside(gather, reduce);
  ASSERT_EQ(both.stepped.size(), 2U);
  for (std::size_t c = 0; c < 2; ++c) {
    const SteppedCollective& each = both.stepped[c];
    const Plan& alone = c == 0 ? gather : reduce;
    ASSERT_EQ(each.sends.size(), alone.stepped[0].sends.size());
    for (std::size_t m = 0; m < each.sends.size(); ++m) {
      const Op& send = both.op(each.sends[m]);
      EXPECT_EQ(stepped_of(send), c);
      EXPECT_EQ(OpId{send.match}, each.receives[m]);
      EXPECT_EQ(send.size, alone.op(alone.stepped[0].sends[m]).size);
      EXPECT_EQ(send.after_count, alone.op(alone.stepped[0].sends[m]).after_count);
    }
  }
}

TEST(Beside, RefusesPlansOfOtherRanks) {
  const Scenario one = two_sites_of_two();
  const Scenario other = testing::scenario_of({.datacenters = 2,
                                               .gpus = 3,
                                               .link = "latency = \"20ns\"\n"
                                                       "bandwidth = \"1GB/s\""});
  try {
    static_cast<void>(beside(pipeline(one), ring(other, CollectiveKind::all_gather, 400)));
    FAIL() << "plans of other ranks were joined";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("plans of other ranks"));
  }
}

TEST(Beside, RefusesAResourceThatIsAnother) {
  const Scenario one = two_sites_of_two();
  Plan gather = ring(one, CollectiveKind::all_gather, 400);
  for (Resource& each : gather.resources) each.capacity = 2;
  EXPECT_THROW(static_cast<void>(beside(pipeline(one), gather)), Error);
}

}  // namespace
}  // namespace longhaul::plan
