#include "collective/folding/folded_iteration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using testing::planned_iteration;

/// FSDP of so many ranks on nodes of so many.
IterationPlan sharded(int ranks, int gpus, const char* overlap = "fsdp2") {
  const std::vector<std::string> set{
      "model.layers=2", "datacenter.gpus=64", fmt::format("node.gpus={}", gpus),
      fmt::format("parallel.replicas={}", ranks), fmt::format("parallel.shard={}", ranks)};
  return planned_iteration(
      scenario::load_scenario(testing::kShippedScenarios / "centauri-fsdp-dp.toml", set), overlap,
      "1f1b");
}

IterationPlan with_sizes(IterationPlan plan, Bytes size) {
  for (Communication& each : plan.stages[DeviceId{0}].communications) each.size = size;
  return plan;
}

// The example of RankSymmetry: 16 ranks on two nodes are two times eight; on one node one stands
// for all.
TEST(RankSymmetry, ShiftsWholeNodes) {
  const RankSymmetry two_nodes = RankSymmetry::of(sharded(16, 8));
  ASSERT_EQ(two_nodes.count(), 2);
  EXPECT_EQ(two_nodes.image(1, Rank{3}), Rank{11});
  EXPECT_EQ(two_nodes.image(1, Rank{11}), Rank{3});
  EXPECT_EQ(two_nodes.representative(Rank{11}), Rank{3});
  const RankSymmetry one_node = RankSymmetry::of(sharded(8, 8));
  EXPECT_EQ(one_node.count(), 8);
  EXPECT_EQ(one_node.representative(Rank{5}), Rank{0});
}

/// Of each two lanes of sends that hold a resource together: are they in one order everywhere?
std::vector<bool> orders(const IterationPlan& plan) {
  FoldingMemo memo;
  const auto folded = FoldedIteration::of(plan, memo);
  EXPECT_TRUE(folded);
  std::vector<bool> same;
  if (!folded) return same;
  const Plan& few = folded->lowered().plan;
  for (std::size_t a = 0; a < few.lanes.size(); ++a)
    for (std::size_t b = a + 1; b < few.lanes.size(); ++b) {
      if (few.lanes[a].kind != OpKind::send || few.lanes[b].kind != OpKind::send) continue;
      if (few.lanes[a].count == 0 || few.lanes[b].count == 0) continue;
      for (const ResourceId one : few.resources_of(few.lanes[a].first))
        for (const ResourceId other : few.resources_of(few.lanes[b].first))
          if (one == other)
            same.push_back(folded->orders_all_the_same(one, LaneId{static_cast<std::uint32_t>(a)},
                                                       LaneId{static_cast<std::uint32_t>(b)}));
    }
  return same;
}

// Of three ranks 0 sends to 1 and then 2, but 1 to 2 and 0, whose lanes stand the other way round.
TEST(FoldedIteration, KnowsWhereTheOrderOfLanesTurns) {
  IterationPlan direct = with_sizes(sharded(3, 1), Bytes{3'000'000});
  for (Communication& each : direct.stages[DeviceId{0}].communications)
    each.algorithm = plan::CollectiveAlgorithm::direct;
  EXPECT_THAT(orders(direct), Contains(false));
  // Round a ring each sends to the next alone: gathers before scatters.
  EXPECT_THAT(orders(sharded(4, 2)), AllOf(Contains(true), Each(true)));
}

// Gathers and scatters on one lane, or on two, which share the interface of the node.
TEST(FoldedIteration, TakesMessagesWithoutTimeWhereNothingIsShared) {
  const auto folds = [](const char* overlap, Bytes size) {
    FoldingMemo memo;
    return FoldedIteration::of(with_sizes(sharded(4, 1, overlap), size), memo).has_value();
  };
  EXPECT_TRUE(folds("zero3", Bytes{4}));
  EXPECT_FALSE(folds("fsdp2", Bytes{4}));
  EXPECT_TRUE(folds("fsdp2", Bytes{4'000'000}));
}

}  // namespace
}  // namespace longhaul::collective
