#include "plan/lowering/prove_collectives.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "support/plans.hpp"

namespace longhaul::plan {
namespace {

using ::testing::HasSubstr;

/// Two stages of two chunks each in three replicas: rings of three, two on each rank.
Plan three_replicas() {
  Scenario scenario = uniform_scenario(2, 4);
  scenario.parallel.replicas = 3;
  scenario.parallel.gradient_sync = GradientSync::zero1;
  scenario = spread(scenario, 2, Duration{100}, Duration{50});
  return lower(schedule::generate("zbv", scenario), scenario);
}

TEST(ProveCollectives, HoldsForEveryGenerator) {
  int proven = 0;
  for (const schedule::Generator& generator : schedule::generators()) {
    Scenario scenario = uniform_scenario(4, 8);
    scenario.parallel.replicas = 4;
    scenario.parallel.gradient_sync = GradientSync::all_reduce;
    scenario = spread(scenario, 2, Duration{100}, Duration{50});
    const auto schedule = schedule::try_generate(generator, scenario);
    if (!schedule) continue;
    const auto plan = try_lower(*schedule, scenario);
    if (!plan) continue;
    EXPECT_FALSE(plan->stepped.empty()) << generator.name;
    EXPECT_FALSE(why_collectives_wrong(*plan)) << generator.name;
    ++proven;
  }
  EXPECT_GT(proven, 10);
}

TEST(ProveCollectives, SeesAMissingDependency) {
  Plan plan = three_replicas();
  ASSERT_FALSE(why_collectives_wrong(plan));
  const SteppedCollective& ring = plan.stepped.front();
  const auto second = std::ranges::find(ring.steps->messages, 1, &StepMessage::step);
  Op& send = plan.ops[index(ring.sends[to_size(second - ring.steps->messages.begin())])];
  send.after_count = 1;
  send.after = OpId{0};
  const auto why = why_collectives_wrong(plan);
  ASSERT_TRUE(why);
  EXPECT_THAT(why->reason, HasSubstr("does not wait for"));
}

TEST(ProveCollectives, SeesAMessageOfAnotherSize) {
  Plan plan = three_replicas();
  plan.ops[index(plan.stepped.front().sends.front())].size = Bytes{1};
  const auto why = why_collectives_wrong(plan);
  ASSERT_TRUE(why);
  EXPECT_THAT(why->reason, HasSubstr("that it stands for"));
}

// One rank runs two groups the other way round.
TEST(ProveCollectives, NamesOrdersThatFormACycle) {
  Plan plan = three_replicas();
  const auto lane = std::ranges::find_if(plan.lanes, [&](const Lane& each) {
    return each.kind == OpKind::send && each.count > 0 && is_step(plan.op(each.first));
  });
  ASSERT_NE(lane, plan.lanes.end());
  const auto first = plan.ops.begin() + static_cast<std::ptrdiff_t>(index(lane->first));
  const std::size_t held = stepped_of(*first);
  const auto other = std::find_if(first, first + lane->count,
                                  [&](const Op& op) { return stepped_of(op) != held; });
  ASSERT_NE(other, first + lane->count);
  // The ops exchange their places, and with these their ids.
  const OpId a = lane->first;
  const OpId b{static_cast<std::uint32_t>(other - plan.ops.begin())};
  std::swap(*first, *other);
  std::swap(plan.ops[first->match].match, plan.ops[other->match].match);
  for (SteppedCollective& each : plan.stepped)
    for (OpId& send : each.sends) send = send == a ? b : send == b ? a : send;
  for (OpId& before : plan.after) before = before == a ? b : before == b ? a : before;
  for (Op& op : plan.ops)
    if (op.after_count == 1) op.after = op.after == a ? b : op.after == b ? a : op.after;
  const auto why = why_collectives_wrong(plan);
  ASSERT_TRUE(why);
  EXPECT_THAT(why->reason, HasSubstr("in orders that wait for each other: rank"));
  EXPECT_THAT(why->reason, HasSubstr("all-gather"));
}

}  // namespace
}  // namespace longhaul::plan
