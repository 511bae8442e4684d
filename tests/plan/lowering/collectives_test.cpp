#include "plan/lowering/collectives.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "support/bidirectional.hpp"
#include "support/plans.hpp"

/// Lowering of schedules with copies of the model: messages and the sum of the copies' gradients.
namespace longhaul::plan {
namespace {

using testing::bidirectional_gpipe;
using ::testing::ElementsAre;

struct CollectiveOp {
  CollectiveKind kind;
  std::vector<int> chunks;  ///< of each member
  std::vector<int> ranks;
  Duration duration;
  friend bool operator==(const CollectiveOp&, const CollectiveOp&) = default;
  friend void PrintTo(const CollectiveOp& c, std::ostream* out) {
    *out << static_cast<int>(c.kind) << " chunks " << ::testing::PrintToString(c.chunks)
         << " ranks " << ::testing::PrintToString(c.ranks) << " in " << c.duration.count();
  }
};

std::vector<CollectiveOp> collectives_of(const Plan& plan) {
  std::vector<CollectiveOp> all;
  for (const auto& members : plan.collectives) {
    CollectiveOp collective{plan.op(members.front()).collective, {}, {}, {}};
    for (const OpId id : members) {
      collective.chunks.push_back(plan.op(id).chunk);
      collective.ranks.push_back(static_cast<int>(plan.rank_of(id)));
      collective.duration = plan.op(id).duration;
    }
    all.push_back(collective);
  }
  return all;
}

Scenario synchronised(int stages, int microbatches, int replicas, GradientSync sync) {
  Scenario scenario = uniform_scenario(stages, microbatches);
  scenario.parallel.replicas = replicas;
  scenario.parallel.gradient_sync = sync;
  return spread(scenario, 2, Duration{100}, Duration{50});
}

TEST(BidirectionalPlan, SumsTheGradientsOfTheTwoCopies) {
  const Scenario scenario = synchronised(2, 2, 1, GradientSync::all_reduce);
  const Plan plan = lower(testing::bidirectional_gpipe(2, 2), scenario);
  // 8 MiB at 1 MiB per 50 ns: half of it each way, and a latency each way. The second stage's
  // gradients are there first.
  const Duration both{2 * (4 * 50 + 100)};
  EXPECT_THAT(collectives_of(plan),
              ElementsAre(CollectiveOp{CollectiveKind::all_reduce, {3, 1}, {0, 1}, both},
                          CollectiveOp{CollectiveKind::all_reduce, {0, 2}, {0, 1}, both}));
}

TEST(BidirectionalPlan, Zero1GathersBeforeAndScattersAfter) {
  const Scenario scenario = synchronised(2, 2, 1, GradientSync::zero1);
  const Plan plan = lower(testing::bidirectional_gpipe(2, 2), scenario);
  EXPECT_EQ(plan.collectives.size(), 4u);
  const OpId forward = testing::find(plan, 1, OpKind::compute, BlockKind::F, 0, 1);
  bool gathered = false;
  for (const OpId before : plan.after_of(forward))
    gathered |= plan.op(before).kind == OpKind::collective && plan.op(before).chunk == 1;
  EXPECT_TRUE(gathered);
  for (const auto& members : plan.collectives) {
    for (const OpId id : members) {
      if (plan.op(id).collective == CollectiveKind::all_gather) continue;
      ASSERT_EQ(plan.after_of(id).size(), 1u);
      const Op& last = plan.op(plan.after_of(id).front());
      EXPECT_EQ(last.block_kind, BlockKind::W);
      EXPECT_EQ(last.chunk, plan.op(id).chunk);
    }
  }
}

TEST(BidirectionalPlan, ReplicasAndCopiesAreOneGroup) {
  const Scenario scenario = synchronised(2, 4, 2, GradientSync::all_reduce);
  const Plan plan = lower(testing::bidirectional_gpipe(2, 4, 2), scenario);
  const auto all = collectives_of(plan);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0].ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(all[0].chunks, ElementsAre(3, 1, 3, 1));
}

TEST(BidirectionalPlan, TheMiddleDeviceSumsAtHome) {
  const Scenario scenario = synchronised(3, 4, 1, GradientSync::all_reduce);
  const auto all = collectives_of(lower(testing::bidirectional_gpipe(3, 4), scenario));
  ASSERT_EQ(all.size(), 2u);
  for (const CollectiveOp& collective : all) EXPECT_THAT(collective.ranks, ElementsAre(0, 2));
  Scenario twice = synchronised(3, 4, 2, GradientSync::all_reduce);
  const auto replicated = collectives_of(lower(testing::bidirectional_gpipe(3, 4, 2), twice));
  ASSERT_EQ(replicated.size(), 3u);
  EXPECT_TRUE(std::ranges::any_of(replicated, [](const CollectiveOp& collective) {
    return collective.ranks == std::vector{1, 4} && collective.chunks == std::vector{1, 1};
  }));
}

TEST(BidirectionalPlan, ACopyWithoutMicrobatchesTakesPartAllTheSame) {
  const Scenario scenario = synchronised(2, 1, 1, GradientSync::zero1);
  const Plan plan = lower(testing::bidirectional_gpipe(2, 1), scenario);
  EXPECT_EQ(plan.collectives.size(), 4u);
}

TEST(BidirectionalPlan, NoneLeavesTheSumOut) {
  const Scenario scenario = synchronised(2, 2, 1, GradientSync::none);
  EXPECT_TRUE(lower(testing::bidirectional_gpipe(2, 2), scenario).collectives.empty());
}

TEST(BidirectionalPlan, MembersMeetInOneOrder) {
  for (const GradientSync sync : {GradientSync::all_reduce, GradientSync::zero1}) {
    const Scenario scenario = synchronised(5, 7, 3, sync);
    const Plan plan = lower(testing::bidirectional_gpipe(5, 7, 3), scenario);
    // Ids on a lane ascend in its order; so any two groups must agree on every common rank.
    for (const auto& a : plan.collectives) {
      for (const auto& b : plan.collectives) {
        int before = 0;
        int after = 0;
        for (const OpId x : a) {
          for (const OpId y : b) {
            if (plan.rank_of(x) == plan.rank_of(y)) ++(x < y ? before : after);
          }
        }
        EXPECT_TRUE(&a == &b || before == 0 || after == 0);
      }
    }
  }
}

TEST(BidirectionalPlan, NoMessageLeavesItsCopy) {
  const Scenario scenario = synchronised(3, 4, 1, GradientSync::none);
  const Plan plan = lower(testing::bidirectional_gpipe(3, 4), scenario);
  const auto sends = std::ranges::count(plan.ops, OpKind::send, &Op::kind);
  EXPECT_EQ(sends, 2 * 2 * 4);  // 2 boundaries, both ways, 4 microbatches
}

}  // namespace
}  // namespace longhaul::plan
