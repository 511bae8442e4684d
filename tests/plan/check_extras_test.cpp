#include "plan/check_extras.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_draft.hpp"

namespace longhaul::plan {
namespace {

using ::testing::HasSubstr;

/// A rank with a block on its device and a host task after it.
struct Small {
  PlanDraft draft{"small"};
  Rank rank = draft.add_rank("east");
  ResourceId device = draft.add_resource("device 0", ResourceKind::device);
  LaneId compute = draft.add_lane(rank, "compute", OpKind::compute, {device});
  PlanDraft::Handle block = draft.add_block(compute, Duration{10});

  std::string why(const Stream& stream = {}) {
    const auto refusal = why_unsound(draft.make(), stream);
    return refusal ? refusal->reason : "";
  }
};

TEST(CheckExtras, APlanWithoutAnyIsSound) {
  Small small;
  const Plan plan = small.draft.make();
  EXPECT_FALSE(why_unsound(plan));
  EXPECT_FALSE(needs_order_of_time(plan));
  EXPECT_FALSE(needs_event_player(plan));
}

TEST(CheckExtras, ADeadlineBeforeNotBefore) {
  Small small;
  small.draft.window(small.block, Duration{30}, Duration{20});
  EXPECT_THAT(small.why(), HasSubstr("deadline of rank 0"));
}

TEST(CheckExtras, AWeakDependencyOnALaterIteration) {
  Small small;
  small.draft.meets(small.block, small.block, -1);
  EXPECT_THAT(small.why(), HasSubstr("weak dependency on a later iteration"));
}

TEST(CheckExtras, ASlowdownBelowOne) {
  Small small;
  small.draft.overlap(Overlap::of(1, 0.9, 1));
  EXPECT_THAT(small.why(), HasSubstr("level datacenter is 0.9 (below 1)"));
}

TEST(CheckExtras, ACapacityOfZero) {
  Small small;
  (void)small.draft.add_resource("workers 0", ResourceKind::workers, 0);
  EXPECT_THAT(small.why(), HasSubstr("\"workers 0\" has a capacity of 0"));
}

TEST(CheckExtras, AStreamWithoutAFirstIteration) {
  Small small;
  EXPECT_THAT(small.why({0, {}}), HasSubstr("has no first iteration"));
}

TEST(CheckExtras, AStreamThatGoesOnAfterItsEnd) {
  Small small;
  EXPECT_THAT(small.why({4, {}, 4}), HasSubstr("cannot go on with iteration 4"));
  EXPECT_THAT(small.why({4, {}, -1}), HasSubstr("cannot go on with iteration -1"));
  EXPECT_EQ(small.why({4, {}, 3}), "");
}

TEST(CheckExtras, AllOpsOfAStreamOptional) {
  Small small;
  small.draft.window(small.block, Duration{0});
  EXPECT_THAT(small.why({2, {}}), HasSubstr("all ops of the stream are optional"));
}

TEST(CheckExtras, TwoRulesForWhatAnOpHolds) {
  Small small;
  const ResourceId link = small.draft.add_resource("link", ResourceKind::link, 1, Serve::deadline);
  const LaneId other = small.draft.add_lane(small.rank, "other", OpKind::compute,
                                            {small.device, link}, Serve::arrival);
  small.draft.add_block(other, Duration{1});
  EXPECT_THAT(small.why(), HasSubstr("is picked by arrival, but \"device 0\""));
}

TEST(CheckExtras, ALaneThatChoosesAndHoldsNothing) {
  Small small;
  const LaneId other =
      small.draft.add_lane(small.rank, "other", OpKind::compute, {}, Serve::arrival);
  small.draft.add_block(other, Duration{1});
  EXPECT_THAT(small.why(), HasSubstr("holds nothing"));
}

TEST(CheckExtras, ADeviceThatSlowsAndIsSharedInOrder) {
  Small small;
  const LaneId other = small.draft.add_lane(small.rank, "other", OpKind::compute, {small.device});
  small.draft.add_block(other, Duration{1});
  small.draft.overlap(Overlap::of(1, 1, 1.3));
  EXPECT_THAT(small.why(), HasSubstr("Let it serve by arrival or deadline"));
}

TEST(CheckExtras, ADeviceThatSlowsAndTakesTwoBlocksOrAStatedOrder) {
  for (const bool stated : {false, true}) {
    Small small;
    small.draft.overlap(Overlap::of(1, 1, 1.3));
    Plan plan = small.draft.make();
    Resource& device = plan.resources[index(small.device)];
    EXPECT_FALSE(why_unsound(plan));
    if (stated)
      device.order = {small.draft.id(small.block)};
    else
      device.capacity = 2;
    const auto refusal = why_unsound(plan);
    ASSERT_TRUE(refusal) << stated;
    EXPECT_THAT(refusal->reason, HasSubstr("Let it serve by arrival or deadline"));
  }
}

TEST(CheckExtras, WhatMayNotRunIsAllThatNeedsIt) {
  PlanDraft draft{"two"};
  const Rank rank = draft.add_rank("east");
  const Rank other = draft.add_rank("west");
  const LaneId compute = draft.add_lane(rank, "compute", OpKind::compute,
                                        {draft.add_resource("device 0", ResourceKind::device)});
  const LaneId there = draft.add_lane(other, "compute", OpKind::compute,
                                      {draft.add_resource("device 1", ResourceKind::device)});
  const LaneId sends = draft.add_lane(rank, "send>1", OpKind::send,
                                      {draft.add_resource("link", ResourceKind::link)});
  const LaneId receives = draft.add_lane(other, "recv<0", OpKind::recv);
  const auto a = draft.add_block(compute, Duration{1});
  const auto b = draft.add_block(compute, Duration{1});
  const auto message = draft.add_message(sends, receives, Duration{1}, Duration{1});
  const auto taker = draft.add_block(there, Duration{1});
  const auto weak = draft.add_block(there, Duration{1});
  draft.window(a, Duration{0});
  draft.after(message.send, a);
  draft.after(taker, message.recv);
  draft.meets(weak, message.recv);
  const Plan plan = draft.make();
  const auto marks = ops_that_may_not_run(plan, MayNotRun::optional);
  const auto marked = [&](PlanDraft::Handle op) { return marks[index(draft.id(op))] != 0; };
  for (const auto op : {a, message.send, message.recv, taker}) EXPECT_TRUE(marked(op));
  for (const auto op : {b, weak}) EXPECT_FALSE(marked(op));
}

TEST(CheckExtras, SeveralComputeLanesNeedNoOrderOfTimeButOneOnRanks) {
  Small windowed, two_lanes;
  windowed.draft.window(windowed.block, Duration{0});
  EXPECT_TRUE(needs_event_player(windowed.draft.make()));
  two_lanes.draft.add_lane(two_lanes.rank, "host", OpKind::compute);
  const Plan plan = two_lanes.draft.make();
  EXPECT_FALSE(needs_order_of_time(plan));
  EXPECT_TRUE(needs_event_player(plan));
}

}  // namespace
}  // namespace longhaul::plan
