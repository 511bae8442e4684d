#include "plan/stream_values.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/plan_draft.hpp"

namespace longhaul::plan {
namespace {

/// A block, and a message to another rank.
Plan plan_of(Duration block, Duration transfer, Bytes size, int blocks = 1) {
  PlanDraft draft{"mine"};
  const Rank east = draft.add_rank("east");
  const Rank west = draft.add_rank("west");
  const LaneId compute = draft.add_lane(east, "compute", OpKind::compute,
                                        {draft.add_resource("device 0", ResourceKind::device)});
  const LaneId sends = draft.add_lane(east, "send>1", OpKind::send,
                                      {draft.add_resource("link", ResourceKind::link)});
  const LaneId receives = draft.add_lane(west, "recv<0", OpKind::recv);
  for (int i = 0; i < blocks; ++i) draft.add_block(compute, block);
  draft.add_message(sends, receives, transfer, Duration{7}, size);
  return draft.make();
}

TEST(StreamValues, ChangeFromTheirIterationsOn) {
  const Plan plan = plan_of(Duration{3}, Duration{5}, Bytes{11});
  StreamValues values{plan};
  EXPECT_EQ(values.duration(OpId{0}, 9), Duration{3});
  values.append({2, {{OpId{0}, Duration{30}}}});
  values.append({4, {{OpId{1}, Duration{50}, Bytes{110}}}});
  EXPECT_EQ(values.last(), 4);
  EXPECT_EQ(values.duration(OpId{0}, 1), Duration{3});
  EXPECT_EQ(values.duration(OpId{0}, 2), Duration{30});
  EXPECT_EQ(values.duration(OpId{0}, 7), Duration{30}) << "what a later one leaves as it is";
  EXPECT_EQ(values.size(OpId{1}, 3), Bytes{11});
  EXPECT_EQ(values.size(OpId{1}, 4), Bytes{110});
  EXPECT_EQ(values.duration(OpId{1}, 5), Duration{50});
  values.forget_before(3);
  EXPECT_EQ(values.held(), 2U) << "3 has the first";
  values.forget_before(4);
  EXPECT_EQ(values.held(), 1U);
  EXPECT_EQ(values.duration(OpId{0}, 4), Duration{30});
  values.forget_before(9);
  EXPECT_EQ(values.size(OpId{1}, 9), Bytes{110}) << "the last one stays";
  values.clear();
  EXPECT_EQ(values.size(OpId{1}, 4), Bytes{11});
}

TEST(SettingBetween, NamesWhatDiffers) {
  const Plan before = plan_of(Duration{3}, Duration{5}, Bytes{11});
  const Plan after = plan_of(Duration{3}, Duration{50}, Bytes{110});
  EXPECT_TRUE(setting_between(before, before, 6).durations.empty());
  const StreamSetting setting = setting_between(before, after, 6);
  EXPECT_EQ(setting.from_iteration, 6);
  ASSERT_EQ(setting.durations.size(), 2U) << "both sides of the message";
  StreamValues values{before};
  values.append(setting);
  for (std::uint32_t i = 0; i < after.ops.size(); ++i) {
    EXPECT_EQ(values.duration(OpId{i}, 6), after.ops[i].duration) << i;
    EXPECT_EQ(values.size(OpId{i}, 6), after.ops[i].size) << i;
  }
  EXPECT_THROW((void)setting_between(before, plan_of(Duration{3}, Duration{5}, Bytes{11}, 2), 6),
               Error);
}

}  // namespace
}  // namespace longhaul::plan
