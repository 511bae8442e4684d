#include "plan/rewrite/draft.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rewrite/expand.hpp"
#include "plan/rewrite/with_operators.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "support/operators.hpp"
#include "support/plans.hpp"
#include "support/same_plan.hpp"

namespace longhaul::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::plan_difference;

Draft::Handle handle_of(OpId id) { return Draft::Handle{static_cast<std::uint32_t>(index(id))}; }

Plan two_sites(const char* name = "zb-h1") {
  const Scenario scenario = spread(uniform_scenario(2, 3), 2, 40ns, 10ns);
  return lower(schedule::generate(name, scenario), scenario);
}

std::vector<std::string> lane_texts(const Plan& plan, std::size_t lane) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < plan.lanes[lane].count; ++i) {
    const Block block = plan.ops[index(plan.lanes[lane].first) + i].block();
    texts.push_back(fmt::format("{}{}", longhaul::to_string(block.kind), block.microbatch));
  }
  return texts;
}

TEST(Draft, FrozenAgainAPlanIsWhatItWas) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random{seed};
    Scenario scenario = uniform_scenario(4, 4);
    scenario.parallel.replicas = static_cast<int>(random.between(1, 3));
    scenario.parallel.gradient_sync = static_cast<GradientSync>(random.between(0, 4));
    scenario = spread(scenario, 2, 40ns, 10ns);
    if (random.between(0, 1) == 0)
      for (Link& link : scenario.links) link.sharing = Sharing::datacenter;
    testing::cut_by(testing::random_operators(scenario, random), scenario);
    for (const schedule::Generator& generator : schedule::generators()) {
      const auto schedule = schedule::try_generate(generator, scenario);
      if (!schedule) continue;
      const auto plan = try_lower(*schedule, scenario);
      if (!plan) continue;
      EXPECT_EQ(plan_difference(freeze(thaw(*plan)), *plan), "") << generator.name;
      const Plan inside = expand(with_operators(*plan, *schedule, scenario).or_throw());
      EXPECT_EQ(plan_difference(freeze(thaw(inside)), inside), "") << generator.name;
    }
  }
}

TEST(Draft, APassSwapsTwoBlocks) {
  const Plan plan = two_sites("gpipe");
  ASSERT_THAT(lane_texts(plan, 0), ElementsAre("F0", "F1", "F2", "B0", "B1", "B2"));
  Draft draft = thaw(plan);
  draft.move(draft.lane(LaneId{0})[2], LaneId{0}, 1);
  const Plan swapped = freeze(draft);
  EXPECT_THAT(lane_texts(swapped, 0), ElementsAre("F0", "F2", "F1", "B0", "B1", "B2"));
  const OpId send = testing::find(swapped, 0, OpKind::send, BlockKind::F, 2);
  EXPECT_THAT(swapped.after_of(send), ElementsAre(OpId{1}));
  EXPECT_EQ(swapped.op(OpId{swapped.op(send).match}).match, index(send));
}

TEST(Draft, APassInsertsAnOpThatAnotherWaitsFor) {
  const Plan plan = two_sites("gpipe");
  Draft draft = thaw(plan);
  Op op = plan.ops[0];
  op.block_kind = BlockKind::R;
  op.duration = 5ns;
  const Draft::Handle inserted = draft.insert(LaneId{0}, 3, op);
  const OpId send = testing::find(plan, 0, OpKind::send, BlockKind::F, 0);
  draft.add_after(handle_of(send), inserted);
  const Plan longer = freeze(draft);
  EXPECT_EQ(longer.ops.size(), plan.ops.size() + 1);
  EXPECT_THAT(lane_texts(longer, 0), ElementsAre("F0", "F1", "F2", "R0", "B0", "B1", "B2"));
  EXPECT_THAT(longer.after_of(testing::find(longer, 0, OpKind::send, BlockKind::F, 0)),
              ElementsAre(OpId{0}, OpId{3}));
}

TEST(Draft, WhatWaitedForARemovedOpWaitsForWhatItWaitedFor) {
  const Plan plan = two_sites("gpipe");
  Draft draft = thaw(plan);
  const OpId forward = testing::find(plan, 1, OpKind::compute, BlockKind::F, 1);
  const OpId arrival = testing::find(plan, 1, OpKind::recv, BlockKind::F, 1);
  const OpId gradient = testing::find(plan, 1, OpKind::send, BlockKind::B, 1);
  draft.add_after(handle_of(gradient), handle_of(forward));
  draft.remove(handle_of(forward));
  const Plan shorter = freeze(draft);
  EXPECT_EQ(shorter.ops.size(), plan.ops.size() - 1);
  const OpId sent = testing::find(shorter, 1, OpKind::send, BlockKind::B, 1);
  EXPECT_THAT(shorter.after_of(sent),
              ElementsAre(testing::find(shorter, 1, OpKind::compute, BlockKind::B, 1),
                          testing::find(shorter, 1, OpKind::recv, BlockKind::F, 1)));
  EXPECT_EQ(to_text(shorter, shorter.after_of(sent)[1]), to_text(plan, arrival));
}

TEST(Draft, AMessageGoesWithBothSidesAndComesOnNewLanes) {
  const Plan plan = two_sites("gpipe");
  Draft draft = thaw(plan);
  const OpId send = testing::find(plan, 0, OpKind::send, BlockKind::F, 2);
  const Op sent = plan.op(send);
  const Op received = plan.op(OpId{sent.match});
  draft.remove(handle_of(send));
  EXPECT_EQ(freeze(draft).ops.size(), plan.ops.size() - 2);
  const LaneId from = draft.add_lane("extra>1", OpKind::send, Rank{0}, Rank{1});
  const LaneId to = draft.add_lane("extra<0", OpKind::recv, Rank{1}, Rank{0});
  const Draft::Handle one = draft.insert(from, 0, sent);
  const Draft::Handle other = draft.insert(to, 0, received);
  draft.join(one, other);
  draft.add_after(one, handle_of(OpId{2}));
  const Plan again = freeze(draft);
  EXPECT_EQ(again.ops.size(), plan.ops.size());
  const OpId found = testing::find(again, 0, OpKind::send, BlockKind::F, 2);
  EXPECT_EQ(again.lane_of(found).name, "extra>1");
  EXPECT_EQ(again.rank_of(OpId{again.op(found).match}), Rank{1});
  // Two lanes hold the link now: it is no longer private to one.
  EXPECT_EQ(again.resources[index(again.resources_of(found)[0])].lanes, 2U);
  for (std::size_t l = 1; l < again.lanes.size(); ++l)
    EXPECT_GE(again.lanes[l].rank, again.lanes[l - 1].rank) << "a rank's lanes lie together";
}

TEST(Draft, RefusesWaitsAcrossRanksAndHalvesOfMessages) {
  const Plan plan = two_sites("gpipe");
  const auto refusal = [&](auto change) -> std::string {
    Draft draft = thaw(plan);
    change(draft);
    try {
      (void)freeze(draft);
    } catch (const Error& error) {
      return error.what();
    }
    return "frozen";
  };
  const OpId far = testing::find(plan, 1, OpKind::compute, BlockKind::F, 0);
  EXPECT_THAT(refusal([&](Draft& draft) { draft.add_after(Draft::Handle{0}, handle_of(far)); }),
              HasSubstr("F(chunk 0, microbatch 0) of gpipe waits for an op of another rank"));
  const OpId send = testing::find(plan, 0, OpKind::send, BlockKind::F, 0);
  EXPECT_THAT(refusal([&](Draft& draft) { draft.insert(LaneId{1}, 0, plan.op(send)); }),
              HasSubstr("has no other side"));
}

}  // namespace
}  // namespace longhaul::plan
