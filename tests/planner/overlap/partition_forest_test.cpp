#include "planner/overlap/partition_forest.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/overlaps.hpp"

namespace longhaul::planner {
namespace {

using testing::centauri_toy;
using ::testing::HasSubstr;

PartitionForest forest_of(const OverlapVariant& variant) {
  return partition_forest(variant).or_throw();
}
OverlapVariant variant_of(const Scenario& scenario) {
  return overlap_variant(schedule::generate("gpipe", scenario), scenario, Arrangement::decoupled)
      .or_throw();
}

std::string reason_of(const PartitionTree& tree, const std::string& partition) {
  for (const PrunedPartition& each : tree.pruned)
    if (each.partition == partition) return each.reason;
  return "not pruned";
}

// The first gather takes 1 ms and nothing runs beside it: in quarters one of them is exposed. The
// second hides beside the first product, and is not cut (Algorithm 1, lines 24 and 25).
TEST(PartitionForest, HasALeafForEachPartitionOfTheToy) {
  const OverlapVariant variant = variant_of(centauri_toy());
  const PartitionForest forest = forest_of(variant);
  ASSERT_EQ(forest.trees.size(), 5U);
  const PartitionTree& first = forest.trees.front();
  ASSERT_EQ(first.leaves.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto pieces = static_cast<std::int64_t>(i) + 1;
    EXPECT_NEAR(static_cast<double>(first.leaves[i].cost.count()), 1e6, 3) << pieces;
    EXPECT_NEAR(static_cast<double>(first.leaves[i].exposed.count()),
                1e6 / static_cast<double>(pieces), 4);
  }
  EXPECT_EQ(first.leaves[first.choice].partition.pieces, 4);
  EXPECT_THAT(reason_of(first, "gather + broadcast"), HasSubstr("takes"));
  EXPECT_THAT(reason_of(first, "broadcasts of distinct roots"), HasSubstr("same messages"));
  EXPECT_THAT(reason_of(first, "cut along A"), HasSubstr("no tokens"));
  EXPECT_THAT(reason_of(first, "cut along B"), HasSubstr("CD"));
  const PartitionTree& second = forest.trees[1];
  EXPECT_EQ(second.leaves[second.choice].partition.pieces, 1);
  EXPECT_EQ(second.leaves[second.choice].exposed, 0ms);
  EXPECT_EQ(forest.model, std::nullopt);
}

// Of pieces that cost more than they hide the fewest are best.
TEST(PartitionForest, CountsWhatPiecesCost) {
  const OverlapVariant variant = variant_of(centauri_toy({"overlap.split_overhead=400us"}));
  const PartitionTree first = forest_of(variant).trees.front();
  EXPECT_EQ(first.leaves[1].exposed, 900us);
  EXPECT_EQ(first.leaves[3].exposed, 1450us);
}

// Parts of an odd number of bytes and of what runs beside them are rounded.
TEST(PartitionForest, ExposesNothingBelowZero) {
  const std::vector<std::string> set{"model.layers=2"};
  const Scenario scenario =
      scenario::load_scenario(testing::kShippedScenarios / "centauri-fsdp.toml", set);
  const OverlapVariant variant = variant_of(scenario);
  for (const PartitionTree& tree : forest_of(variant).trees)
    for (const PartitionLeaf& leaf : tree.leaves) EXPECT_GE(leaf.exposed, 0ns);
}

TEST(PartitionForest, PrunesByCostAndBandwidth) {
  const Scenario scenario = centauri_toy(
      {"parallel.replicas=4", "parallel.shard=4", "node.internal=100MB/s", "node.gpus=2"});
  const OverlapVariant variant = variant_of(scenario);
  const PartitionTree first = forest_of(variant).trees.front();
  const auto far_first = std::ranges::find_if(first.leaves, [](const PartitionLeaf& each) {
    return each.partition.grouping == collective::Grouping::far_first;
  });
  ASSERT_NE(far_first, first.leaves.end());
  EXPECT_LT(far_first->cost, first.leaves.front().cost);
  EXPECT_NE(first.leaves[first.choice].partition.grouping, collective::Grouping::flat);
  const OverlapDecisions decisions = decisions_by_rules(variant, forest_of(variant));
  EXPECT_EQ(decisions.partitions.size(), variant.classes.size());
}

// Reduce and broadcast each cross once as the all-reduce does, one after the other at one root.
TEST(PartitionForest, SubstitutesAnAllReduce) {
  const Scenario scenario = centauri_toy({"parallel.gradient_sync=all-reduce", "parallel.shard=1",
                                          "parallel.replicas=4", "node.gpus=4"});
  const OverlapVariant variant = variant_of(scenario);
  const PartitionForest forest = forest_of(variant);
  ASSERT_EQ(forest.trees.size(), 1U);
  const PartitionTree& sum = forest.trees.front();
  EXPECT_EQ(sum.communications.tier, collective::Tier::model);
  EXPECT_EQ(sum.leaves[sum.choice].partition.substitution,
            collective::Substitution::scatter_and_gather);
  EXPECT_THAT(reason_of(sum, "reduce + broadcast"), HasSubstr("takes"));
}

}  // namespace
}  // namespace longhaul::planner
