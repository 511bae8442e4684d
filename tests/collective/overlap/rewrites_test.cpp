#include "collective/overlap/rewrites.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using testing::centauri_toy;
using ::testing::ElementsAre;
using testing::planned_iteration;

const StageWork& only_stage(const IterationPlan& plan) { return plan.stages[DeviceId{0}]; }

TEST(Rewrites, SerializedCollectivesStandBetweenOperations) {
  const IterationPlan plan = planned_iteration(centauri_toy(), "serial");
  const StageWork& work = only_stage(plan);
  for (const Communication& each : work.communications) {
    EXPECT_EQ(each.queue, 0);
    EXPECT_LE(each.before.size(), 1U);
    EXPECT_LE(each.after.size(), 1U);
  }
  EXPECT_EQ(work.issue.size(), work.communications.size());
}

TEST(Rewrites, DgradsRunAheadOfWgrads) {
  const IterationPlan plan = planned_iteration(centauri_toy(), "ooo");
  const StageWork& work = only_stage(plan);
  std::vector<BlockKind> kinds;
  for (const OperationId id : work.order)
    if (number(work.operations[id].microbatch) >= 0) kinds.push_back(work.operations[id].work);
  EXPECT_THAT(kinds, ElementsAre(BlockKind::F, BlockKind::F, BlockKind::D, BlockKind::D,
                                 BlockKind::W, BlockKind::W));
  EXPECT_EQ(work.leaving, Leaving::with_dgrad);
}

TEST(Rewrites, SumsInTwoAreScattersAndTheirGathers) {
  const Scenario scenario = centauri_toy(
      {"parallel.gradient_sync=all-reduce", "parallel.shard=1", "parallel.bucket=2MB"});
  const IterationPlan plan = planned_iteration(scenario, "syndicate");
  const StageWork& work = only_stage(plan);
  ASSERT_EQ(work.issue.size(), 4U);
  for (std::size_t i = 0; i < 4; i += 2) {
    const Communication& scatter = work.communications[work.issue[i]];
    const Communication& gather = work.communications[work.issue[i + 1]];
    EXPECT_EQ(scatter.kind, CollectiveKind::reduce_scatter);
    EXPECT_EQ(gather.kind, CollectiveKind::all_gather);
    EXPECT_THAT(gather.follows, ElementsAre(work.issue[i]));
    EXPECT_NE(scatter.queue, gather.queue);
    EXPECT_TRUE(scatter.needed_by.empty());
    EXPECT_FALSE(gather.needed_by.empty());
  }
}

TEST(Rewrites, BackwardsGatherInTheNodeWhereThereAreSeveral) {
  const auto of_node = [](std::vector<std::string> set) {
    set.push_back("parallel.replicas=4");
    set.push_back("parallel.shard=4");
    int count = 0;
    const IterationPlan plan = planned_iteration(centauri_toy(set), "zeropp");
    for (const Communication& each : only_stage(plan).communications)
      count += each.members == Members::node ? 1 : 0;
    EXPECT_EQ(only_stage(plan).second_copy, count > 0 ? Bytes{2'000'000} : Bytes{});
    return count;
  };
  EXPECT_EQ(of_node({}), 1);  // all-but-last: one unit is gathered again
  EXPECT_EQ(of_node({"node.gpus=4"}), 0);
  EXPECT_EQ(of_node({"node.gpus=1"}), 0);
}

}  // namespace
}  // namespace longhaul::collective
