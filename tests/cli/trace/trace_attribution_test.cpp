// A device beside which its host and a copy engine work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "plan/plan_draft.hpp"
#include "plan/rows.hpp"
#include "sim/simulate.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// Blocks of 10 and 30 ms on two lanes of one device; between them a task of 15 ms of one of two
/// threads and a copy of 5.
Plan with_tasks() {
  plan::PlanDraft draft{"by hand"};
  const Rank rank = draft.add_rank("west");
  const ResourceId device = draft.add_resource("device 0", ResourceKind::device);
  const ResourceId workers = draft.add_resource("workers 0", ResourceKind::workers, 2);
  const ResourceId engine = draft.add_resource("copies 0", ResourceKind::copy_engine);
  const LaneId blocks = draft.add_lane(rank, "compute", OpKind::compute, {device});
  const LaneId other = draft.add_lane(rank, "other", OpKind::compute, {device});
  const LaneId host = draft.add_lane(rank, "host", OpKind::compute, {workers}, Serve::arrival);
  const LaneId copies = draft.add_lane(rank, "copies", OpKind::compute, {engine});
  const auto first = draft.add_block(blocks, 10ms);
  const auto second = draft.add_block(other, 30ms);
  const auto pack = draft.add_block(host, 15ms);
  const auto log = draft.add_block(host, 12ms);
  const auto load = draft.add_block(copies, 5ms);
  draft.after(pack, first);
  draft.after(log, first);
  draft.after(load, pack);
  draft.after(second, load);
  return draft.make();
}

/// The trace of it, after schedules of these names without any row.
void write_traced(const std::string& file, const std::vector<std::string>& without_rows = {}) {
  const Plan plan = with_tasks();
  trace::Trace trace;
  trace.info.creator = "test";
  trace.info.scenario = kUniform;
  trace.info.environment = "{}";
  trace.predicted.schedules = without_rows;
  plan::append_rows(trace.predicted, plan, sim::simulate_results(plan), 0);
  trace::write_trace(file, trace);
}

class TracedTasks : public ::testing::Test {
protected:
  TracedTasks() { write_traced(file_); }
  TempDir dir_;
  std::string file_ = dir_.path("t.h5");
};

TEST_F(TracedTasks, HaveRowsOfTheirOwn) {
  const Outcome text = longhaul_run({"trace", "attribution", file_});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, ContainsRegex("busy +40.00 +66.7"));
  EXPECT_THAT(text.out, ContainsRegex("host_task +15.00 +25.0"));
  EXPECT_THAT(text.out, ContainsRegex("copy +5.00 +8.3"));
  EXPECT_THAT(text.out, ContainsRegex("makespan +60.00 +100.0"));
  EXPECT_THAT(text.out, ContainsRegex("host tasks +15.00 +25.0"));
  EXPECT_THAT(text.out, ContainsRegex("copies +5.00 +8.3"));
  const nlohmann::json side =
      longhaul_run({"trace", "attribution", file_, "--json"}).json()["schedules"][0]["predicted"];
  EXPECT_EQ(side["busy_ns"], 40e6);
  EXPECT_EQ(side["idle"]["host_task"], 15e6);
  EXPECT_EQ(side["idle"]["copy"], 5e6);
  EXPECT_EQ(side["idle"]["dependency"], 0);
  EXPECT_EQ(side["tasks"]["host_task"]["tasks"], 2);
  EXPECT_EQ(side["tasks"]["host_task"]["busy_ns"], 15e6);
  EXPECT_EQ(side["tasks"]["host_task"]["work_ns"], 27e6);
  EXPECT_EQ(side["tasks"]["copy"]["tasks"], 1);
}

TEST_F(TracedTasks, AreValidRowsThatExportsName) {
  const Outcome checked = longhaul_run({"check", file_});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  const std::string csv = dir_.path("t.csv");
  ASSERT_EQ(longhaul_run({"trace", "export", file_, "--format", "csv", "--out", csv}).code, 0);
  EXPECT_THAT(file_text(csv), HasSubstr(",host_task,"));
  EXPECT_THAT(file_text(csv), HasSubstr(",copy,"));
}

TEST(Attribution, GoesOnAfterAScheduleWithoutRows) {
  const TempDir dir;
  const std::string file = dir.path("t.h5");
  write_traced(file, {"never run"});
  const Outcome text = longhaul_run({"trace", "attribution", file});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, ContainsRegex("busy +40.00 +66.7"));
  EXPECT_THAT(text.out, Not(HasSubstr("never run")));
  const nlohmann::json schedules =
      longhaul_run({"trace", "attribution", file, "--json"}).json()["schedules"];
  ASSERT_EQ(schedules.size(), 2U);
  EXPECT_EQ(schedules[0]["schedule"], "never run");
  EXPECT_TRUE(schedules[0]["predicted"].is_null());
  EXPECT_EQ(schedules[1]["predicted"]["busy_ns"], 40e6);
}

TEST(Attribution, OfAScheduleSaysNothingOfTasks) {
  const TempDir dir;
  const std::string file = dir.path("t.h5");
  ASSERT_EQ(longhaul_run(
                {"simulate", dir.write("s.toml", kTwoSites), "--schedule", "1f1b", "--out", file})
                .code,
            0);
  EXPECT_THAT(longhaul_run({"trace", "attribution", file}).out, Not(HasSubstr("host")));
  EXPECT_THAT(longhaul_run({"trace", "attribution", file, "--json"}).out,
              Not(::testing::AnyOf(HasSubstr("host_task"), HasSubstr("\"tasks\""))));
}

}  // namespace
}  // namespace longhaul::test
