#include "engine/events/event_facts.hpp"

#include <gtest/gtest.h>

#include "engine/plan_player.hpp"
#include "plan/plan_draft.hpp"

namespace longhaul::engine {
namespace {

using namespace std::chrono_literals;
using Way = EventFacts::Way;
using Access = EventFacts::Access;

/// Two ranks, a message between them, and a block on either.
struct TwoRanks {
  plan::PlanDraft draft{"two ranks"};
  Rank east = draft.add_rank("east"), west = draft.add_rank("west");
  ResourceId device = draft.add_resource("device 0", ResourceKind::device);
  LaneId here = draft.add_lane(east, "compute", OpKind::compute, {device});
  LaneId there = draft.add_lane(west, "compute", OpKind::compute,
                                {draft.add_resource("device 1", ResourceKind::device)});
  LaneId sends = draft.add_lane(east, "send>1", OpKind::send,
                                {draft.add_resource("link 0>1", ResourceKind::link)});
  LaneId receives = draft.add_lane(west, "recv<0", OpKind::recv);
  plan::PlanDraft::Handle block = draft.add_block(here, 10ms);
  plan::PlanDraft::Handle taker = draft.add_block(there, 10ms);
  plan::PlanDraft::Message message = draft.add_message(sends, receives, 4ms, 20ms);

  [[nodiscard]] Way way(const Plan& plan, plan::PlanDraft::Handle op) const {
    return EventFacts{plan, east}.ways[index(plan.op(draft.id(op)).lane)];
  }
  [[nodiscard]] bool needs_word(const Plan& plan) const {
    return EventFacts{plan, east}.needs_go_ahead(plan.op(draft.id(message.send)), plan);
  }
};

TEST(EventFacts, LanesOfAPlanWithoutExtrasAreInTurnAndHoldTheirOwn) {
  TwoRanks two;
  const Plan plan = two.draft.make();
  const EventFacts facts{plan, two.east};
  for (const Way way : facts.ways) EXPECT_EQ(way, Way::in_turn);
  EXPECT_EQ(facts.access_of(plan.op(two.draft.id(two.block))), Access::own);
  EXPECT_FALSE(two.needs_word(plan));
  EXPECT_EQ(facts.reach, 0);
}

TEST(EventFacts, WhatDependsOnAnOptionalOpIsOptionalAndItsLaneAPool) {
  TwoRanks two;
  two.draft.window(two.block, 0ms, 20ms);
  two.draft.after(two.message.send, two.block);
  const Plan plan = two.draft.make();
  const EventFacts facts{plan, two.east};
  EXPECT_TRUE(facts.is_optional(two.draft.id(two.message.recv)));
  EXPECT_FALSE(facts.is_optional(two.draft.id(two.taker)));
  EXPECT_EQ(two.way(plan, two.message.send), Way::pool);
  EXPECT_EQ(facts.access_of(plan.op(two.draft.id(two.block))), Access::choice);
}

TEST(EventFacts, TwoLanesOfADeviceAskInOrderOfReadiness) {
  TwoRanks two;
  const LaneId other = two.draft.add_lane(two.east, "other", OpKind::compute, {two.device});
  (void)two.draft.add_block(other, 1ms);
  const Plan plan = two.draft.make();
  const EventFacts facts{plan, two.east};
  EXPECT_EQ(facts.access_of(plan.op(two.draft.id(two.block))), Access::request);
}

TEST(EventFacts, ASendWaitsForTheWordOfAReceiveThatWaits) {
  TwoRanks two;
  two.draft.after(two.message.recv, two.taker, 2);
  const Plan plan = two.draft.make();
  EXPECT_TRUE(two.needs_word(plan));
  EXPECT_EQ((EventFacts{plan, two.west}.reach), 2);
  EXPECT_EQ((EventFacts{plan, two.west}.far_of(two.draft.id(two.message.recv)).size()), 1U);
}

TEST(EventFacts, NamesWhatRanksDoNotPlay) {
  TwoRanks fine, slowed, gathered;
  EXPECT_EQ(first_unplayed(fine.draft.make()), nullptr);
  slowed.draft.overlap(plan::Overlap::of(1, 1, 2));
  EXPECT_STREQ(first_unplayed(slowed.draft.make()), "computation that slows beside messages");
  const auto lane = [&](Rank rank) {
    return gathered.draft.add_lane(rank, "collective", OpKind::collective);
  };
  const std::vector<LaneId> lanes{lane(gathered.east), lane(gathered.west)};
  (void)gathered.draft.add_collective(CollectiveKind::all_reduce, lanes, 5ms);
  EXPECT_STREQ(first_unplayed(gathered.draft.make()),
               "collectives that are one op, beside what waits");
}

}  // namespace
}  // namespace longhaul::engine
