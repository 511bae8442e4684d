#include "collective/partition/partition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/steps/collective_steps.hpp"
#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using testing::centauri_toy;
using ::testing::ElementsAre;

TEST(Partition, HasTheRowsOfTable2) {
  EXPECT_THAT(substitutions_of(CollectiveKind::all_reduce),
              ElementsAre(Substitution::none, Substitution::reduce_and_broadcast,
                          Substitution::scatter_and_gather));
  EXPECT_THAT(substitutions_of(CollectiveKind::reduce_scatter),
              ElementsAre(Substitution::none, Substitution::reduce_and_scatter,
                          Substitution::reduces_of_distinct_roots));
  EXPECT_THAT(substitutions_of(CollectiveKind::all_gather),
              ElementsAre(Substitution::none, Substitution::gather_and_broadcast,
                          Substitution::broadcasts_of_distinct_roots));
}

// Each shard goes from its root to the next member until all have it: a broadcast by a chain.
TEST(Partition, OfDistinctRootsIsARing) {
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const plan::Collective ring{kind, {Rank{0}, Rank{1}, Rank{2}, Rank{3}}, Bytes{4000}};
    const plan::CollectiveSteps steps = plan::steps_of(ring);
    EXPECT_EQ(steps.messages.size(), 4U * 3U);
    for (const plan::StepMessage& each : steps.messages) {
      EXPECT_EQ(each.to, (each.from + 1) % 4);
      EXPECT_EQ(each.size, Bytes{1000});
    }
  }
}

TEST(Partition, GroupsWhereNodesAreEqual) {
  const auto levels = [](std::vector<std::string> set) {
    return levels_of_shard(centauri_toy(set), DeviceId{0});
  };
  const auto four = levels({"parallel.replicas=4", "parallel.shard=4"});
  ASSERT_TRUE(four);
  EXPECT_EQ(four->near, 2);
  EXPECT_EQ(four->far, 2);
  EXPECT_TRUE(four->are_two());
  EXPECT_FALSE(levels({})->are_two());
  EXPECT_FALSE(levels({"parallel.replicas=4", "parallel.shard=4", "node.gpus=3"}));
  EXPECT_FALSE(levels({"parallel.gradient_sync=all-reduce", "parallel.shard=1"}));
}

TEST(Partition, AppliesWhereItSaysSomething) {
  const LevelSizes two{2, 2};
  Communication gather;
  gather.kind = CollectiveKind::all_gather;
  gather.members = Members::shard;
  gather.needed_by = {OperationId{0}};
  EXPECT_TRUE(applies_to({.grouping = Grouping::far_first}, gather, two));
  EXPECT_FALSE(applies_to({.grouping = Grouping::far_first}, gather, std::nullopt));
  EXPECT_FALSE(applies_to({.group_parts = 2}, gather, two));
  EXPECT_FALSE(applies_to({.substitution = Substitution::scatter_and_gather}, gather, two));
  Communication scatter = gather;
  scatter.kind = CollectiveKind::reduce_scatter;
  scatter.needed_by.clear();
  EXPECT_TRUE(applies_to({.grouping = Grouping::near_first}, scatter, two));
  EXPECT_FALSE(applies_to({.grouping = Grouping::far_first}, scatter, two));
  EXPECT_FALSE(applies_to({.pieces = 2}, scatter, two));
  EXPECT_EQ(to_text(Partition{}), "whole");
  EXPECT_EQ(to_text(Partition{.grouping = Grouping::far_first, .pieces = 4}),
            "far first, 4 pieces");
}

}  // namespace
}  // namespace longhaul::collective
