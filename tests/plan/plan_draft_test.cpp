#include "plan/plan_draft.hpp"

#include <gtest/gtest.h>

#include "plan/rows.hpp"

namespace longhaul::plan {
namespace {

TEST(PlanDraft, NumbersOpsByRankAndLane) {
  PlanDraft draft{"mine"};
  const Rank east = draft.add_rank("east");
  const Rank west = draft.add_rank("west");
  const ResourceId link = draft.add_resource("link", ResourceKind::link);
  const LaneId there = draft.add_lane(west, "compute", OpKind::compute,
                                      {draft.add_resource("device 1", ResourceKind::device)});
  const LaneId receives = draft.add_lane(west, "recv<0", OpKind::recv);
  const LaneId here = draft.add_lane(east, "compute", OpKind::compute,
                                     {draft.add_resource("device 0", ResourceKind::device)});
  const LaneId sends = draft.add_lane(east, "send>1", OpKind::send, {link});
  const auto taker = draft.add_block(there, Duration{3});
  const auto message = draft.add_message(sends, receives, Duration{5}, Duration{7}, Bytes{11});
  const auto maker = draft.add_block(here, Duration{2});
  draft.after(message.send, maker);
  draft.after(taker, message.recv);
  const Plan plan = draft.make();
  EXPECT_EQ(draft.id(maker), OpId{0});
  EXPECT_EQ(draft.id(message.send), OpId{1});
  EXPECT_EQ(draft.id(taker), OpId{2});
  EXPECT_EQ(draft.id(message.recv), OpId{3});
  EXPECT_EQ(draft.id(here), LaneId{0});
  EXPECT_EQ(draft.id(receives), LaneId{3});
  EXPECT_EQ(plan.op(OpId{1}).match, 3u);
  EXPECT_EQ(plan.op(OpId{3}).match, 1u);
  EXPECT_EQ(plan.op(OpId{1}).peer, west);
  EXPECT_EQ(plan.op(OpId{3}).duration, Duration{7});
  ASSERT_EQ(plan.after_of(OpId{2}).size(), 1u);
  EXPECT_EQ(plan.after_of(OpId{2}).front(), OpId{3});
  EXPECT_TRUE(plan.crosses_datacenters(OpId{1}));
  EXPECT_EQ(plan.resources[index(link)].lanes, 1u);
}

TEST(PlanDraft, SlicesShareTheTransferAndNameThemselvesInRows) {
  PlanDraft draft{"mine"};
  const Rank east = draft.add_rank("east");
  const Rank west = draft.add_rank("west");
  const LaneId sends = draft.add_lane(east, "send>1", OpKind::send,
                                      {draft.add_resource("link", ResourceKind::link)});
  const LaneId receives = draft.add_lane(west, "recv<0", OpKind::recv);
  const auto slices = draft.add_slices(sends, receives, 3, Duration{10}, Duration{1}, Bytes{8});
  const Plan plan = draft.make();
  std::vector<std::int64_t> transfers, sizes;
  for (const auto& slice : slices) {
    transfers.push_back(plan.op(draft.id(slice.send)).duration.count());
    sizes.push_back(plan.op(draft.id(slice.send)).size.count());
  }
  EXPECT_EQ(transfers, (std::vector<std::int64_t>{4, 3, 3}));
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{3, 3, 2}));
  const OpTimes times(plan.ops.size());
  const TimelineRow row = PlanRows{plan, times}[index(draft.id(slices[1].recv))];
  EXPECT_EQ(row.slice, 1);
  EXPECT_EQ(row.slices, 3);
}

TEST(PlanDraft, RowsHaveOutcomesAndVersions) {
  PlanDraft draft{"mine"};
  const LaneId lane = draft.add_lane(draft.add_rank("east"), "compute", OpKind::compute,
                                     {draft.add_resource("device 0", ResourceKind::device)});
  draft.add_block(lane, Duration{1});
  draft.add_block(lane, Duration{1});
  const Plan plan = draft.make();
  const OpResults results{OpTimes(2), {Outcome::ran, Outcome::skipped}, {7, -1}};
  Timeline timeline;
  append_rows(timeline, plan, results, 3);
  EXPECT_EQ(timeline.rows[0].version, 7);
  EXPECT_EQ(timeline.rows[1].version, -1);
  EXPECT_EQ(timeline.rows[0].outcome, static_cast<int>(Outcome::ran));
  EXPECT_EQ(timeline.rows[1].outcome, static_cast<int>(Outcome::skipped));
  EXPECT_EQ(timeline.rows[1].iteration, 3);
}

}  // namespace
}  // namespace longhaul::plan
