#include "plan/lowering/lowering.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"

/// Ranks of a plan: those of each place of a stage, in any order, and those that do not train.
namespace longhaul::plan {
namespace {

using ::testing::HasSubstr;

constexpr RankOrder kMegatron{RankDimension::tensor, RankDimension::replica, RankDimension::stage};

Scenario with_ranks(int tensor, const RankOrder& order) {
  Scenario scenario = uniform_scenario(3, 4);
  scenario.parallel.replicas = 2;
  scenario.parallel.tensor = tensor;
  scenario.parallel.order = order;
  scenario.parallel.gradient_sync = GradientSync::none;
  return spread(scenario, 3, Duration{100}, Duration{50});
}

TEST(RanksOfAPlan, FollowTheRowsOfTheirReplicaAndStage) {
  for (const RankOrder& order : {kTensorStageReplica, kMegatron}) {
    const Scenario scenario = with_ranks(2, order);
    const Schedule schedule = schedule::generate("1f1b", scenario);
    const Plan plan = lower(schedule, scenario);
    ASSERT_EQ(plan.ranks.size(), 12U);
    for (const Lane& lane : plan.lanes) {
      const RankInfo& info = plan.ranks[index(lane.rank)];
      EXPECT_EQ(scenario.rank(info.replica, info.device, info.tensor), lane.rank);
      EXPECT_EQ(info.datacenter, scenario.datacenter_of(lane.rank));
      if (lane.kind != OpKind::compute) {
        const RankInfo& peer = plan.ranks[index(lane.peer)];
        EXPECT_EQ(peer.tensor, info.tensor);
        EXPECT_EQ(peer.replica, info.replica);
        continue;
      }
      const auto row = schedule.row(info.replica, info.device);
      ASSERT_EQ(lane.count, row.size());
      for (std::size_t i = 0; i < row.size(); ++i)
        EXPECT_EQ(plan.ops[index(lane.first) + i].block(), row[i]);
    }
  }
}

TEST(RanksOfAPlan, LieInTheOrderOfTheirNumbers) {
  const Scenario scenario = with_ranks(2, kMegatron);
  const Plan plan = lower(schedule::generate("1f1b", scenario), scenario);
  for (std::size_t i = 1; i < plan.lanes.size(); ++i)
    EXPECT_LE(index(plan.lanes[i - 1].rank), index(plan.lanes[i].rank));
}

TEST(RanksOfAPlan, ThatDoNotTrainHaveNoOps) {
  Scenario scenario = with_ranks(1, kTensorStageReplica);
  scenario.add_services({RankRole::decode, DatacenterId{1}, 2});
  const Plan plan = lower(schedule::generate("1f1b", scenario), scenario);
  ASSERT_EQ(plan.ranks.size(), 8U);
  EXPECT_EQ(plan.ranks[7].role, RankRole::decode);
  EXPECT_EQ(plan.ranks[7].datacenter, DatacenterId{1});
  EXPECT_EQ(ops_of_rank(plan, Rank{7}).count, 0U);
}

TEST(RanksOfAPlan, RelayInOneOrderAlone) {
  Scenario scenario = with_ranks(1, kMegatron);
  Schedule schedule = schedule::generate("1f1b", scenario);
  schedule.cell = 2;
  const auto plan = try_lower_pooled(schedule, scenario);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.refusal().reason, HasSubstr("in the order of their ranks"));
}

TEST(ReplicasOfAPlan, HaveTheirOwnCostsAndCountsOfMicrobatches) {
  Scenario scenario = with_ranks(1, kTensorStageReplica);
  scenario.parallel.replica_microbatches = {4, 2};
  scenario.replica_costs.assign(2, scenario.costs);
  scenario.replica_costs[1].forward.assign(3, Duration{70});
  scenario.replica_costs[1].message.assign(3, Bytes{1000});
  const Plan plan = lower(schedule::generate("1f1b", scenario), scenario);
  int forwards[2] = {};
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    const int replica = number(plan.ranks[index(plan.rank_of(OpId{i}))].replica);
    if (op.kind == OpKind::send) {
      EXPECT_EQ(op.size, replica == 0 ? 1_MiB : Bytes{1000});
    }
    if (op.kind != OpKind::compute || op.block_kind != BlockKind::F) continue;
    ++forwards[replica];
    EXPECT_EQ(op.duration, Duration{replica == 0 ? 100 : 70});
  }
  EXPECT_EQ(forwards[0], 12);
  EXPECT_EQ(forwards[1], 6);
}

}  // namespace
}  // namespace longhaul::plan
