#include "plan/lowering/collectives.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "support/bidirectional.hpp"
#include "support/plans.hpp"

/// Lowering of schedules with copies of the model: messages and the sum of the copies' gradients.
namespace longhaul::plan {
namespace {

using testing::bidirectional_gpipe;
using ::testing::ElementsAre;

struct Group {
  CollectiveKind kind;
  int chunk;
  std::vector<int> ranks;
  Bytes size;
  friend bool operator==(const Group&, const Group&) = default;
  friend void PrintTo(const Group& group, std::ostream* out) {
    *out << to_text(group.kind) << " of chunk " << group.chunk << " on ranks "
         << ::testing::PrintToString(group.ranks) << ", " << group.size.count() << " bytes";
  }
};

std::vector<Group> groups_of(const Plan& plan) {
  std::vector<Group> all;
  for (const SteppedCollective& each : plan.stepped) {
    std::vector<int> ranks;
    for (const Rank rank : each.collective.members) ranks.push_back(static_cast<int>(rank));
    all.push_back({each.collective.kind, each.chunk, ranks, each.collective.size});
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
  // The second stage's gradients are there first.
  EXPECT_THAT(groups_of(plan), ElementsAre(Group{CollectiveKind::all_reduce, 3, {0, 1}, 8_MiB},
                                           Group{CollectiveKind::all_reduce, 0, {0, 1}, 8_MiB}));
  EXPECT_TRUE(plan.collectives.empty());
}

TEST(BidirectionalPlan, Zero1GathersBeforeAndScattersAfter) {
  const Scenario scenario = synchronised(2, 2, 1, GradientSync::zero1);
  const Plan plan = lower(testing::bidirectional_gpipe(2, 2), scenario);
  ASSERT_EQ(plan.stepped.size(), 4U);
  const OpId forward = testing::find(plan, 1, OpKind::compute, BlockKind::F, 0, 1);
  bool gathered = false;
  for (const OpId before : plan.after_of(forward)) {
    const Op& op = plan.op(before);
    if (!is_step(op)) continue;
    const SteppedCollective& gather = plan.stepped[stepped_of(op)];
    gathered |= gather.collective.kind == CollectiveKind::all_gather && gather.chunk == 3;
  }
  EXPECT_TRUE(gathered);
  for (const SteppedCollective& each : plan.stepped) {
    if (each.collective.kind == CollectiveKind::all_gather) continue;
    for (const OpId send : each.sends) {  // of a ring of two: each member's only one
      const auto after = plan.after_of(send);
      const auto last = std::ranges::find(after, OpKind::compute,
                                          [&](OpId before) { return plan.op(before).kind; });
      ASSERT_NE(last, after.end());
      EXPECT_EQ(plan.op(*last).block_kind, BlockKind::W);
      EXPECT_EQ(plan.op(*last).chunk % 2, each.chunk % 2);  // of the same stage
    }
  }
}

TEST(BidirectionalPlan, ReplicasAndCopiesAreOneGroup) {
  const Scenario scenario = synchronised(2, 4, 2, GradientSync::all_reduce);
  const Plan plan = lower(testing::bidirectional_gpipe(2, 4, 2), scenario);
  const auto all = groups_of(plan);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_THAT(all[0].ranks, ElementsAre(0, 1, 2, 3));
}

TEST(BidirectionalPlan, TheMiddleDeviceSumsAtHome) {
  const Scenario scenario = synchronised(3, 4, 1, GradientSync::all_reduce);
  const auto all = groups_of(lower(testing::bidirectional_gpipe(3, 4), scenario));
  ASSERT_EQ(all.size(), 2u);
  for (const Group& collective : all) EXPECT_THAT(collective.ranks, ElementsAre(0, 2));
  Scenario twice = synchronised(3, 4, 2, GradientSync::all_reduce);
  const auto replicated = groups_of(lower(testing::bidirectional_gpipe(3, 4, 2), twice));
  ASSERT_EQ(replicated.size(), 3u);
  EXPECT_TRUE(std::ranges::any_of(replicated, [](const Group& collective) {
    return collective.ranks == std::vector{1, 4} && collective.chunk == 1;
  }));
}

TEST(BidirectionalPlan, ACopyWithoutMicrobatchesTakesPartAllTheSame) {
  const Scenario scenario = synchronised(2, 1, 1, GradientSync::zero1);
  const Plan plan = lower(testing::bidirectional_gpipe(2, 1), scenario);
  EXPECT_EQ(plan.stepped.size(), 4U);
}

TEST(BidirectionalPlan, NoneLeavesTheSumOut) {
  const Scenario scenario = synchronised(2, 2, 1, GradientSync::none);
  EXPECT_TRUE(lower(testing::bidirectional_gpipe(2, 2), scenario).stepped.empty());
}

TEST(BidirectionalPlan, MembersMeetInOneOrder) {
  for (const GradientSync sync : {GradientSync::all_reduce, GradientSync::zero1}) {
    const Scenario scenario = synchronised(5, 7, 3, sync);
    const Plan plan = lower(testing::bidirectional_gpipe(5, 7, 3), scenario);
    // On every lane the collectives come in the same order.
    for (const Lane& lane : plan.lanes) {
      std::size_t latest = 0;
      for (std::uint32_t i = 0; i < lane.count; ++i) {
        const Op& op = plan.ops[index(lane.first) + i];
        if (!is_step(op)) break;
        EXPECT_GE(stepped_of(op), latest);
        latest = stepped_of(op);
      }
    }
  }
}

// A member's first message of a collective waits for its gradients and for its part of the one
// before; its F waits for all that a gather brings.
TEST(TrainingCollectives, WaitForGradientsAndForEachOther) {
  const Scenario scenario = synchronised(2, 2, 3, GradientSync::zero1);
  const Plan plan = lower(schedule::generate("1f1b", scenario), scenario);
  ASSERT_EQ(plan.stepped.size(), 4U);
  const auto of_stage_0 = [&](CollectiveKind kind) -> const SteppedCollective& {
    return *std::ranges::find_if(plan.stepped, [&](const SteppedCollective& each) {
      return each.collective.kind == kind && each.chunk == 0;
    });
  };
  const SteppedCollective& gather = of_stage_0(CollectiveKind::all_gather);
  const SteppedCollective& scatter = of_stage_0(CollectiveKind::reduce_scatter);
  const OpId forward = testing::find(plan, 0, OpKind::compute, BlockKind::F, 0);
  std::vector<OpId> got;
  for (std::size_t m = 0; m < gather.receives.size(); ++m)
    if (gather.steps->messages[m].to == 0) got.push_back(gather.receives[m]);
  EXPECT_EQ(got.size(), 2U);
  for (const OpId receive : got)
    EXPECT_NE(std::ranges::find(plan.after_of(forward), receive), plan.after_of(forward).end());
  const auto first = std::ranges::find_if(scatter.steps->messages, [](const StepMessage& m) {
    return m.from == 0 && m.left_before < 0;
  });
  const OpId send = scatter.sends[to_size(first - scatter.steps->messages.begin())];
  const auto after = plan.after_of(send);
  EXPECT_NE(std::ranges::find(after, testing::find(plan, 0, OpKind::compute, BlockKind::B, 1)),
            after.end());
  EXPECT_NE(std::ranges::find(after, got.back()), after.end());
  for (std::size_t m = 0; m < gather.sends.size(); ++m) {
    if (gather.steps->messages[m].from == 0 && gather.steps->messages[m].step == 1) {
      EXPECT_NE(std::ranges::find(after, gather.sends[m]), after.end());
    }
  }
}

// With a time alone a collective is one op of each member, which holds the links of the ring.
TEST(TrainingCollectives, AreOneOpThatHoldsTheirLinksForSearches) {
  const Scenario scenario = synchronised(2, 2, 2, GradientSync::all_reduce);
  const Plan plan = lower(schedule::generate("1f1b", scenario), scenario, Arrangement::decoupled,
                          [](const Collective& collective) {
                            EXPECT_EQ(collective.members.size(), 2U);
                            return Duration{77};
                          });
  EXPECT_TRUE(plan.stepped.empty());
  ASSERT_EQ(plan.collectives.size(), 2U);
  for (const std::vector<OpId>& members : plan.collectives) {
    ASSERT_EQ(members.size(), 2U);
    for (const OpId member : members) {
      EXPECT_EQ(plan.op(member).duration, Duration{77});
      EXPECT_EQ(plan.resources_of(member).size(), 2U);  // both ways of the pair
    }
  }
}

// Estimates hold nothing but their rank's turn.
TEST(TrainingCollectives, EstimatesHoldNoLink) {
  const Scenario scenario = synchronised(2, 2, 2, GradientSync::two_datacenter);
  const Plan plan = lower(schedule::generate("1f1b", scenario), scenario);
  ASSERT_EQ(plan.collectives.size(), 2U);
  for (const OpId member : plan.collectives[0]) {
    ASSERT_EQ(plan.resources_of(member).size(), 1U);
    EXPECT_EQ(plan.resources[index(plan.resources_of(member)[0])].kind, ResourceKind::collective);
  }
}

TEST(BidirectionalPlan, NoMessageLeavesItsCopy) {
  const Scenario scenario = synchronised(3, 4, 1, GradientSync::none);
  const Plan plan = lower(testing::bidirectional_gpipe(3, 4), scenario);
  const auto sends = std::ranges::count(plan.ops, OpKind::send, &Op::kind);
  EXPECT_EQ(sends, 2 * 2 * 4);  // 2 boundaries, both ways, 4 microbatches
}

TEST(ShardedWeights, AreGatheredInTheirGroupAndSummedOverTheCopies) {
  Scenario scenario = synchronised(2, 2, 4, GradientSync::zero3);
  scenario.parallel.shard = 2;
  scenario.costs.weights.assign(2, Bytes{9});
  const Plan plan = lower(schedule::generate("gpipe", scenario), scenario);
  using enum CollectiveKind;
  // Stage 0 lies on ranks 0, 2, 4, 6. Its last gradient comes after stage 1's.
  EXPECT_THAT(
      groups_of(plan),
      ElementsAre(
          Group{all_gather, 0, {0, 2}, Bytes{9}}, Group{all_gather, 0, {4, 6}, Bytes{9}},
          Group{all_gather, 1, {1, 3}, Bytes{9}}, Group{all_gather, 1, {5, 7}, Bytes{9}},
          Group{reduce_scatter, 0, {0, 2}, Bytes{9}}, Group{reduce_scatter, 0, {4, 6}, Bytes{9}},
          Group{all_reduce, 0, {0, 4}, Bytes{5}}, Group{all_reduce, 0, {2, 6}, Bytes{4}},
          Group{reduce_scatter, 1, {1, 3}, Bytes{9}}, Group{reduce_scatter, 1, {5, 7}, Bytes{9}},
          Group{all_reduce, 1, {1, 5}, Bytes{5}}, Group{all_reduce, 1, {3, 7}, Bytes{4}}));
}

TEST(ShardedWeights, OverAllReplicasAreTreatedAsZero1TreatsThem) {
  const Scenario scenario = synchronised(2, 3, 3, GradientSync::zero1);
  Scenario sharded = scenario;
  sharded.parallel.gradient_sync = GradientSync::zero3;
  sharded.parallel.shard = 3;
  const Schedule schedule = schedule::generate("1f1b", scenario);
  EXPECT_EQ(groups_of(lower(schedule, sharded)), groups_of(lower(schedule, scenario)));
}

TEST(TensorRanks, SynchroniseWithThoseOfTheirPlaceAlone) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.parallel.replicas = 2;
  scenario.parallel.tensor = 2;
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  scenario = spread(scenario, 2, Duration{100}, Duration{50});
  const Plan plan = lower(schedule::generate("gpipe", scenario), scenario);
  using enum CollectiveKind;
  EXPECT_THAT(
      groups_of(plan),
      ElementsAre(Group{all_reduce, 0, {0, 4}, 8_MiB}, Group{all_reduce, 0, {1, 5}, 8_MiB},
                  Group{all_reduce, 1, {2, 6}, 8_MiB}, Group{all_reduce, 1, {3, 7}, 8_MiB}));
}

}  // namespace
}  // namespace longhaul::plan
