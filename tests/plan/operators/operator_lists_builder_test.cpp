#include "plan/operators/operator_lists_builder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/generators/generate.hpp"
#include "support/operators.hpp"

namespace longhaul::plan {
namespace {

using testing::cut_by;
using ::testing::ElementsAre;
using testing::operators_of;

Block block_of(BlockKind kind, int chunk, std::uint8_t part = 0, std::uint8_t parts = 1) {
  return {kind, part, parts, ChunkId{chunk}, MicrobatchId{}};
}

std::vector<std::string> text_of(const OperatorLists& lists, OperatorListId id) {
  std::vector<std::string> text;
  for (const OperatorStep& step : lists.list(id))
    text.push_back(lists.names[step.name] + " " + std::to_string(step.end.count()));
  return text;
}

TEST(Portion, IsExactWhereNothingIsScaledAndNearestElsewhere) {
  EXPECT_EQ(portion(7ns, 3ns, 7ns), 3ns);
  EXPECT_EQ(portion(10ns, 3ns, 7ns), 4ns);  // 4.29
  EXPECT_EQ(portion(10ns, 7ns, 7ns), 10ns);
  EXPECT_EQ(portion(10ns, 0ns, 0ns), 10ns);
  EXPECT_EQ(portion(0ns, 3ns, 7ns), 0ns);
  const Duration long_one{std::int64_t{1} << 60};
  EXPECT_EQ(portion(long_one, Duration{5}, Duration{10}), long_one / 2);
}

TEST(OperatorListsBuilder, CutsABlockAtTheEndsOfItsOperators) {
  Scenario scenario = uniform_scenario(2, 4, 100ns);
  cut_by(operators_of({1, 2, 3, 4, 5}), scenario);  // chunk 0: a to c; chunk 1: d, e
  OperatorListsBuilder builder{schedule::generate("1f1b", scenario), scenario};
  const OperatorListId forward = builder.list_of(block_of(BlockKind::F, 0));
  const OperatorListId backward = builder.list_of(block_of(BlockKind::B, 1));
  EXPECT_EQ(builder.list_of(block_of(BlockKind::F, 0)), forward);
  const OperatorLists lists = std::move(builder).take();
  EXPECT_THAT(text_of(lists, forward), ElementsAre("a 17", "b 50", "c 100"));
  // 10, 5, 8, 4 of 27 in 200 ns.
  EXPECT_THAT(text_of(lists, backward),
              ElementsAre("e.dgrad 74", "e.wgrad 111", "d.dgrad 170", "d.wgrad 200"));
  EXPECT_EQ(lists.list_with(0), forward);
  EXPECT_EQ(lists.list_with(3), backward);
  EXPECT_EQ(lists.list_with(6), backward);
}

TEST(OperatorListsBuilder, ChunksWithTheSameOperatorsShareALayersList) {
  Scenario scenario = uniform_scenario(4, 4, 100ns);
  std::vector<Operator> all;
  for (int layer = 0; layer < 8; ++layer) {
    all.push_back({"qkv", OperatorKind::matmul, layer, {}, 3ns, 3ns, 3ns, 3ns});
    all.push_back({"mlp", OperatorKind::matmul, layer, {}, 7ns, 7ns, 7ns, 7ns});
  }
  cut_by(all, scenario);
  scenario.layers = {2, 2, 2, 2};
  OperatorListsBuilder builder{schedule::generate("1f1b", scenario), scenario};
  const OperatorListId first = builder.list_of(block_of(BlockKind::F, 0));
  for (int chunk = 1; chunk < 4; ++chunk)
    EXPECT_EQ(builder.list_of(block_of(BlockKind::F, chunk)), first);
  const OperatorLists lists = std::move(builder).take();
  EXPECT_EQ(lists.steps.size(), 4U);
  EXPECT_EQ(lists.layer_of(lists.list(first)[2], ChunkId{0}), 1);
  EXPECT_EQ(lists.layer_of(lists.list(first)[2], ChunkId{3}), 7);
}

TEST(OperatorListsBuilder, PartsOfABlockDoASliceOfEachOperator) {
  Scenario scenario = uniform_scenario(1, 2, 101ns);
  cut_by(operators_of({1, 1}), scenario);
  OperatorListsBuilder builder{schedule::generate("1f1b", scenario), scenario};
  const OperatorListId first = builder.list_of(block_of(BlockKind::W, 0, 0, 2));
  const OperatorListId second = builder.list_of(block_of(BlockKind::W, 0, 1, 2));
  const OperatorLists lists = std::move(builder).take();
  EXPECT_THAT(text_of(lists, first), ElementsAre("b 26", "a 51"));
  EXPECT_THAT(text_of(lists, second), ElementsAre("b 25", "a 50"));
  EXPECT_EQ(lists.list(second)[0].slice, 1);
  EXPECT_EQ(lists.list(second)[0].slices, 2);
}

TEST(OperatorListsBuilder, WithoutOperatorsABlockHasTheEmptyList) {
  Scenario scenario = uniform_scenario(2, 4, 100ns);
  cut_by(operators_of({5, 5}), scenario);
  const Schedule wave = schedule::generate("zbv", scenario);  // 4 chunks
  OperatorListsBuilder builder{wave, scenario};
  EXPECT_EQ(builder.list_of(block_of(BlockKind::F, 3)), OperatorListId{});
  EXPECT_EQ(builder.lists().list(OperatorListId{}).size(), 0U);
}

TEST(OperatorListsBuilder, EveryListEndsWithItsBlock) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random{seed};
    Scenario scenario = uniform_scenario(static_cast<int>(random.between(1, 4)), 8,
                                         Duration{random.between(0, 1'000'000'007)});
    cut_by(testing::random_operators(scenario, random), scenario);
    const Schedule schedule = schedule::generate("zbv", scenario);
    const schedule::BlockCosts costs{schedule, scenario};
    OperatorListsBuilder builder{schedule, scenario};
    for (const ChunkId chunk : schedule.chunk_ids()) {
      for (const BlockKind kind : every<BlockKind>()) {
        const Block block = block_of(kind, number(chunk), 1, 3);
        const auto list = builder.lists().list(builder.list_of(block));
        if (list.empty()) continue;
        EXPECT_EQ(list.back().end, costs.duration(block)) << "seed " << seed;
        EXPECT_TRUE(std::ranges::is_sorted(list, {}, &OperatorStep::end)) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace longhaul::plan
