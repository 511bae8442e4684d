#include "schedule/block_operators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/block_costs.hpp"
#include "schedule/generators/generate.hpp"
#include "support/operators.hpp"

namespace longhaul::schedule {
namespace {

using testing::cost_by;
using ::testing::ElementsAre;
using testing::operators_of;

std::vector<std::string> named(std::span<const Operator> of_chunk, BlockKind kind) {
  std::vector<std::string> text;
  for (const BlockOperator& each : block_operators(of_chunk, kind))
    text.push_back(each.name + " " + std::to_string(each.time.count()));
  return text;
}

TEST(BlockOperators, RunForwardInFAndBackwardInTheOthers) {
  std::vector<Operator> all = operators_of({10, 20});
  all[0].recompute = 5ns;
  EXPECT_THAT(named(all, BlockKind::F), ElementsAre("a 10", "b 20"));
  EXPECT_THAT(named(all, BlockKind::R), ElementsAre("a 5", "b 20"));
  EXPECT_THAT(named(all, BlockKind::D), ElementsAre("b 40", "a 20"));
  EXPECT_THAT(named(all, BlockKind::W), ElementsAre("b 20", "a 10"));
  EXPECT_THAT(named(all, BlockKind::B),
              ElementsAre("b.dgrad 40", "b.wgrad 20", "a.dgrad 20", "a.wgrad 10"));
  for (const BlockKind kind : every<BlockKind>()) {
    Duration sum{};
    for (const BlockOperator& each : block_operators(all, kind)) sum += each.time;
    EXPECT_EQ(sum_of(all, kind), sum) << to_string(kind);
  }
}

TEST(BlockOperators, LeaveOutWhatHasNothingToDoInABackward) {
  std::vector<Operator> all = operators_of({10, 20});
  all[1].wgrad = 0ns;
  all[0].forward = 0ns;
  EXPECT_THAT(named(all, BlockKind::W), ElementsAre("a 10"));
  EXPECT_THAT(named(all, BlockKind::B), ElementsAre("b.dgrad 40", "a.dgrad 20", "a.wgrad 10"));
  EXPECT_THAT(named(all, BlockKind::F), ElementsAre("a 0", "b 20"));
}

std::vector<std::pair<std::size_t, std::size_t>> ranges(const Schedule& schedule,
                                                        const Scenario& scenario) {
  std::vector<std::pair<std::size_t, std::size_t>> result;
  for (const OperatorRange& each : operators_of_chunks(schedule, scenario))
    result.emplace_back(each.first, each.count);
  return result;
}

TEST(OperatorsOfChunks, AListIsCutEvenlyOverChunksInItsOrder) {
  Scenario scenario = uniform_scenario(2, 4);
  cost_by(operators_of({1, 2, 3, 4, 5}), scenario);
  EXPECT_THAT(ranges(generate("1f1b", scenario), scenario),
              ElementsAre(std::pair{0U, 3U}, std::pair{3U, 2U}));
  EXPECT_THAT(
      ranges(generate("zbv", scenario), scenario),
      ElementsAre(std::pair{0U, 2U}, std::pair{2U, 1U}, std::pair{3U, 1U}, std::pair{4U, 1U}));
}

TEST(OperatorsOfChunks, ThoseOfLayersGoWithThem) {
  Scenario scenario = uniform_scenario(2, 4);
  std::vector<Operator> all = operators_of({1, 2, 3, 4, 5, 6});
  for (std::size_t i = 0; i < all.size(); ++i) all[i].layer = static_cast<int>(i / 2);
  testing::cut_by(all, scenario);
  scenario.layers = {1, 2};
  EXPECT_THAT(ranges(generate("1f1b", scenario), scenario),
              ElementsAre(std::pair{0U, 2U}, std::pair{2U, 4U}));
  // Device 1 has chunks 1 and 2, of one layer each; device 0 has one layer for chunks 0 and 3.
  EXPECT_THAT(
      ranges(generate("zbv", scenario), scenario),
      ElementsAre(std::pair{0U, 2U}, std::pair{2U, 2U}, std::pair{4U, 2U}, std::pair{6U, 0U}));
}

TEST(BlockCosts, AreThoseOfTheChunksOperatorsWhereTheseAreTheCosts) {
  Scenario scenario = uniform_scenario(2, 4);
  cost_by(operators_of({1, 2, 3, 4, 50}), scenario);
  const Schedule wave = generate("zbv", scenario);
  const BlockCosts costs{wave, scenario};
  const auto forward = [&](int chunk) {
    return costs.duration({.kind = BlockKind::F, .chunk = ChunkId{chunk}});
  };
  EXPECT_EQ(forward(0), 3ns);
  EXPECT_EQ(forward(1), 3ns);
  EXPECT_EQ(forward(2), 4ns);
  EXPECT_EQ(forward(3), 50ns);
  EXPECT_EQ(costs.duration({.kind = BlockKind::B, .chunk = ChunkId{3}}), 150ns);
  // Device 0 is twice as fast, or two tensor ranks share it, or a replica has other costs.
  scenario.costs.forward[0] /= 2;
  EXPECT_EQ((BlockCosts{wave, scenario}.duration({.kind = BlockKind::F, .chunk = ChunkId{3}})),
            25ns);
}

}  // namespace
}  // namespace longhaul::schedule
