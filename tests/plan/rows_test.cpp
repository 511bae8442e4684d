#include "plan/rows.hpp"

#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "plan/plan_draft.hpp"
#include "schedule/generators/generate.hpp"
#include "support/plans.hpp"

namespace longhaul::plan {
namespace {

TEST(Rows, ARankAloneGivesItsPartOfAllRows) {
  const Scenario scenario = uniform_scenario(3, 4);
  const Plan plan = lower(schedule::generate("zb-h1", scenario), scenario);
  const OpTimes times(plan.ops.size());
  Timeline all;
  append_rows(all, plan, times, 7);
  ASSERT_EQ(all.rows.size(), plan.ops.size());
  std::vector<TimelineRow> joined;
  for (int rank = 0; rank < 3; ++rank) {
    Timeline one;
    append_rows(one, plan, times, 7, Rank{rank});
    EXPECT_EQ(one.lanes, all.lanes);
    joined.insert(joined.end(), one.rows.begin(), one.rows.end());
  }
  EXPECT_EQ(joined, all.rows);
  EXPECT_EQ(all.rows.front().iteration, 7);
}

TEST(Rows, ARankAloneSaysWhatBecameOfItsOps) {
  const Scenario scenario = uniform_scenario(3, 4);
  const Plan plan = lower(schedule::generate("zb-h1", scenario), scenario);
  OpResults results{OpTimes(plan.ops.size()), {}, {}};
  results.outcomes.resize(plan.ops.size(), Outcome::ran);
  results.versions.resize(plan.ops.size(), -1);
  const OpRange own = ops_of_rank(plan, Rank{1});
  results.outcomes[own.first + 2] = Outcome::skipped;
  results.versions[own.first + 1] = 6;
  Timeline all, one;
  append_rows(all, plan, results, 7);
  append_rows(one, plan, results, 7, Rank{1});
  ASSERT_EQ(one.rows.size(), own.count);
  for (std::size_t i = 0; i < own.count; ++i) EXPECT_EQ(one.rows[i], all.rows[own.first + i]);
  EXPECT_EQ(one.rows[2].outcome, static_cast<std::int32_t>(Outcome::skipped));
  EXPECT_EQ(one.rows[1].version, 6);
}

// Whose message it is both of its sides say, where it goes from one replica to another too.
TEST(Rows, AMessageIsItsSendersReplicas) {
  PlanDraft draft{"by hand"};
  const Rank west = draft.add_rank("west");
  const Rank east = draft.add_rank("east");
  const LaneId sends = draft.add_lane(west, "send>1", OpKind::send,
                                      {draft.add_resource("link 0>1", ResourceKind::link)});
  const LaneId receives = draft.add_lane(east, "recv<0", OpKind::recv);
  const auto message = draft.add_message(sends, receives, Duration{10}, Duration{1});
  const Plan plan = draft.make();
  const OpTimes times(plan.ops.size());
  const PlanRows rows{plan, times};
  const TimelineRow recv = rows[index(draft.id(message.recv))];
  EXPECT_EQ(recv.replica, 1);
  EXPECT_EQ(recv.owner, 0);
  EXPECT_EQ(rows[index(draft.id(message.send))].owner, 0);
}

TEST(Rows, NamesSayWhereOpsMayPassEachOther) {
  PlanDraft draft{"by hand"};
  const Rank rank = draft.add_rank("west");
  const ResourceId device = draft.add_resource("device 0", ResourceKind::device);
  const LaneId plain = draft.add_lane(rank, "compute", OpKind::compute, {device});
  const LaneId extra = draft.add_lane(rank, "extra", OpKind::compute, {device});
  const LaneId host =
      draft.add_lane(rank, "host", OpKind::compute,
                     {draft.add_resource("workers 0", ResourceKind::workers)}, Serve::arrival);
  for (const LaneId lane : {plain, extra, host}) (void)draft.add_block(lane, Duration{1});
  draft.window(draft.add_block(extra, Duration{1}), Duration{0});
  const Plan plan = draft.make();
  Timeline rows;
  append_rows(rows, plan, OpTimes(plan.ops.size()), 0);
  EXPECT_EQ(rows.lanes,
            (std::vector<std::string>{"compute", "extra (any order)", "host (any order)"}));
}

TEST(Rows, OnlyWhatHoldsADeviceIsABlock) {
  PlanDraft draft{"by hand"};
  const Rank rank = draft.add_rank("west");
  const ResourceId device = draft.add_resource("device 0", ResourceKind::device);
  const ResourceId workers = draft.add_resource("workers 0", ResourceKind::workers, 2);
  const ResourceId engine = draft.add_resource("copies 0", ResourceKind::copy_engine);
  const auto add = [&](const char* name, const std::vector<ResourceId>& held) {
    return draft.add_block(draft.add_lane(rank, name, OpKind::compute, held), Duration{10});
  };
  const auto block = add("compute", {device});
  const auto other = add("other", {workers, device});
  const auto task = add("host", {workers});
  const auto copy = add("copies", {engine});
  const auto staged = add("staged copies", {engine, workers});
  const auto free = add("free", {});
  const Plan plan = draft.make();
  const OpTimes times(plan.ops.size());
  const PlanRows rows{plan, times};
  const auto kind = [&](PlanDraft::Handle op) { return rows[index(draft.id(op))].kind; };
  EXPECT_EQ(kind(block), RowKind::F);
  EXPECT_EQ(kind(other), RowKind::F);
  EXPECT_EQ(kind(task), RowKind::host_task);
  EXPECT_EQ(kind(copy), RowKind::copy);
  EXPECT_EQ(kind(staged), RowKind::host_task) << "threads that copy are threads";
  EXPECT_EQ(kind(free), RowKind::F);
}

TEST(Rows, BlocksCarryTheMemoryTheyTakeOrRelease) {
  const Scenario scenario = uniform_scenario(2, 1);
  const Plan plan = lower(schedule::generate("zb-h1", scenario), scenario);
  Timeline timeline;
  append_rows(timeline, plan, OpTimes(plan.ops.size()), 0);
  std::int64_t level = 0;
  for (const TimelineRow& row : timeline.rows) {
    if (!is_compute(row.kind) || row.rank != 0) continue;
    level += row.size_bytes;
    if (row.kind == RowKind::F) {
      EXPECT_EQ(row.size_bytes, scenario.costs.activation[0].count());
    } else {
      EXPECT_EQ(row.size_bytes, -scenario.costs.activation[0].count() / 2);
    }
  }
  EXPECT_EQ(level, 0);
}

TEST(BlockTimeFactor, IsOneWithoutNoiseAndRepeatableWithIt) {
  struct Run run;  // not ::testing::Test::Run
  EXPECT_EQ(block_time_factor(run, DeviceId{0}, OpId{3}, 1), 1.0);
  run.noise = 0.05;
  const double factor = block_time_factor(run, DeviceId{0}, OpId{3}, 1);
  EXPECT_NE(factor, 1.0);
  EXPECT_EQ(factor, block_time_factor(run, DeviceId{0}, OpId{3}, 1));
  EXPECT_NE(factor, block_time_factor(run, DeviceId{0}, OpId{3}, 2));
  run.noise = 0;
  run.stragglers = {1.0, 1.5};
  EXPECT_EQ(block_time_factor(run, DeviceId{1}, OpId{3}, 1), 1.5);
}

}  // namespace
}  // namespace longhaul::plan
