#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "cli/support.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

/// A run of three iterations of which each bubble's times are known: rank 0 computes op 0 and op 1,
/// rank 1 op 2. Predicted are 0 to 100, 200 to 300, and 100 to 200 ns.
class MeasuredBubbles : public ::testing::Test {
protected:
  struct Times {
    std::int64_t start = 0, end = 0;
  };

  void SetUp() override {
    Timeline timeline;
    timeline.schedules = {"gpipe"};
    timeline.datacenters = {"a"};
    timeline.lanes = {"compute", "prefill"};
    trace::RunInfo info;
    info.creator = "test";
    info.environment = "{}";
    for (const std::int32_t rank : {0, 1}) append_blocks(timeline, rank, 0, predicted_);
    trace::begin_run(run_, info, timeline, 2);
    for (int iteration = 0; iteration < 3; ++iteration)
      for (const std::int32_t rank : {0, 1}) {
        timeline.rows.clear();
        append_blocks(timeline, rank, iteration, measured_[to_size(iteration)]);
        if (iteration == 0 && rank == 0) timeline.rows.push_back(prefill());
        trace::write_segment(run_, {0, iteration, rank}, timeline);
      }
  }
  static TimelineRow row_of(std::int64_t op, std::int32_t rank, const Times& times) {
    TimelineRow row;
    row.op = op;
    row.rank = row.device = row.chunk = rank;
    row.microbatch = 0;
    row.start_ns = times.start;
    row.end_ns = times.end;
    return row;
  }
  static void append_blocks(Timeline& timeline, std::int32_t rank, int iteration,
                            const std::vector<Times>& blocks) {
    for (const std::int64_t op : {0, 1, 2}) {
      if ((op == 2) != (rank == 1)) continue;
      timeline.rows.push_back(row_of(op, rank, blocks[to_size(op)]));
      timeline.rows.back().iteration = iteration;
    }
  }
  /// In the bubble of rank 0, which stays one.
  static TimelineRow prefill() {
    TimelineRow row = row_of(3, 0, {150, 180});
    row.kind = RowKind::prefill;
    row.lane = 1;
    row.chunk = row.microbatch = -1;
    row.request = 0;
    row.tokens = 30;
    return row;
  }

  TempDir directory_;
  std::string run_ = directory_.path("run");
  const std::vector<Times> predicted_{{0, 100}, {200, 300}, {100, 200}};
  /// The first of these takes the median time; the last has one bubble that no one predicted.
  const std::vector<std::vector<Times>> measured_{{{0, 110}, {230, 330}, {100, 215}},
                                                  {{0, 100}, {205, 305}, {110, 200}},
                                                  {{0, 100}, {100, 200}, {100, 340}}};
};

TEST_F(MeasuredBubbles, AreComparedWithThePredictedOnes) {
  const Outcome found = longhaul_run({"bubbles", "--trace", run_, "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = found.json()["schedules"][0];
  EXPECT_EQ(json["iterations"], 3);
  EXPECT_EQ(json["iteration"], 0);
  EXPECT_EQ(json["period_ns"], 330);
  EXPECT_EQ(json["predicted_period_ns"], 300);
  EXPECT_DOUBLE_EQ(json["predicted_busy_ratio"].get<double>(), 0.5);
  ASSERT_EQ(json["bubbles"].size(), 2U) << "prefills make none";
  const auto expect_bubble = [&](std::size_t i, const Times& bubble, const Times& off) {
    const nlohmann::json& shown = json["bubbles"][i];
    EXPECT_EQ(shown["rank"], i);
    EXPECT_EQ(shown["start_ns"], bubble.start);
    EXPECT_EQ(shown["end_ns"], bubble.end);
    EXPECT_EQ(shown["start_off_ns"], off.start);
    EXPECT_EQ(shown["end_off_ns"], off.end);
  };
  expect_bubble(0, {110, 230}, {10, 30});
  expect_bubble(1, {215, 430}, {15, 30});
  // By begin: 0, 0, 10, 15 and 140 ns; by end: 5, 15, 30, 30 and 40.
  EXPECT_EQ(json["off_ns"]["start"], nlohmann::json({{"p50", 10}, {"p99", 140}, {"max", 140}}));
  EXPECT_EQ(json["off_ns"]["end"], nlohmann::json({{"p50", 30}, {"p99", 40}, {"max", 40}}));
  EXPECT_EQ(json["off_ns"]["unmatched"], 1);
  EXPECT_THAT(longhaul_run({"bubbles", "--trace", run_}).out, HasSubstr("330 ns"));
}

TEST_F(MeasuredBubbles, NeedAMeasurementAndNoScenario) {
  const Outcome named = longhaul_run({"bubbles", "scenario.toml", "--trace", run_});
  EXPECT_EQ(named.code, 2);
  EXPECT_THAT(named.err, HasSubstr("a trace says its scenario itself"));
  const std::string scenario = directory_.write("s.toml", kUniform);
  const std::string simulated = directory_.path("t.h5");
  ASSERT_EQ(longhaul_run({"simulate", scenario, "--schedule", "1f1b", "--out", simulated}).code, 0);
  const Outcome none = longhaul_run({"bubbles", "--trace", simulated});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("nothing was measured"));
}

}  // namespace
}  // namespace longhaul::test
