#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "trace/broken_file.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// A trace that `simulate` wrote, of 1F1B and ZB-H1 in two datacenters.
class SimulatedTrace : public ::testing::Test {
protected:
  void SetUp() override {
    const Outcome run = longhaul_run({"simulate", dir_.write("s.toml", kTwoSites), "--schedule",
                                      "1f1b,zb-h1", "--out", trace_, "--json"});
    ASSERT_EQ(run.code, 0) << run.err;
    records_ = run.json()["schedules"];
  }
  TempDir dir_;
  std::string trace_ = dir_.path("t.h5");
  nlohmann::json records_;
};

TEST_F(SimulatedTrace, IsValid) {
  const Outcome run = longhaul_run({"check", trace_});
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("valid trace"));
}

/// bench_pipeline's table has the scenario's own times.
TEST_F(SimulatedTrace, SummarySaysAtWhichScaleItWasPlayed) {
  EXPECT_THAT(longhaul_run({"trace", "summary", trace_}).out, Not(HasSubstr("time_scale")));
  trace::Trace played = trace::read_trace(trace_);
  played.info.time_scale = 0.3;
  const std::string file = dir_.path("played.h5");
  trace::write_trace(file, played);
  EXPECT_THAT(longhaul_run({"trace", "summary", file}).out,
              HasSubstr("\ntimes as played: time_scale 0.3 of the scenario's own\n"));
}

/// What a newer program may have written: the notes are no faults, and no part of the answer.
TEST_F(SimulatedTrace, WithRowsOfANewKindIsReadWithoutThem) {
  const std::size_t rows = trace::read_trace(trace_).predicted.rows.size();
  {
    const trace::hdf5::Silence silence;
    std::vector<std::pair<const char*, std::uint8_t>> kinds;
    std::vector<std::uint8_t> numbers;
    for (const RowKind kind : every<RowKind>())
      kinds.emplace_back(to_string(kind), static_cast<std::uint8_t>(kind));
    kinds.emplace_back("barrier", std::uint8_t{40});
    for (const TimelineRow& row : trace::read_trace(trace_).predicted.rows)
      numbers.push_back(row.kind == RowKind::W ? std::uint8_t{40}
                                               : static_cast<std::uint8_t>(row.kind));
    testing::BrokenFile{trace_}.replace_kinds("predicted/kind", kinds, numbers);
  }
  const std::string note = " rows of kind 40 (barrier) are left out";
  const Outcome checked = longhaul_run({"check", trace_});
  EXPECT_EQ(checked.code, 0) << checked.out;
  EXPECT_THAT(checked.out, HasSubstr(note));
  const auto json = longhaul_run({"check", trace_, "--json"}).json()["files"][0];
  EXPECT_THAT(json["notes"][0].get<std::string>(), HasSubstr(note));
  EXPECT_LT(json["predicted_rows"], rows);
  ::testing::internal::CaptureStderr();
  const Outcome summary = longhaul_run({"trace", "summary", trace_, "--json"});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(note));
  EXPECT_EQ(summary.code, 0);
  EXPECT_THAT(summary.out, Not(HasSubstr("barrier")));
}

TEST_F(SimulatedTrace, IsNeverOverwritten) {
  const std::string before = testing::file_text(trace_);
  const Outcome run =
      longhaul_run({"simulate", dir_.path("s.toml"), "--schedule", "1f1b", "--out", trace_});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(testing::file_text(trace_), before);
}

TEST_F(SimulatedTrace, SummaryRepeatsTheSimulatedTimes) {
  const Outcome run = longhaul_run({"trace", "summary", trace_, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto schedules = run.json()["schedules"];
  ASSERT_EQ(schedules.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(schedules[i]["schedule"], records_[i]["schedule"]);
    EXPECT_EQ(schedules[i]["predicted_ns"], records_[i]["makespan_ns"]);
    EXPECT_EQ(schedules[i]["n"], 0);
    EXPECT_TRUE(schedules[i]["measured_median_ns"].is_null());
    EXPECT_TRUE(schedules[i]["difference_percent"].is_null());
  }
  EXPECT_THAT(longhaul_run({"trace", "summary", trace_}).out, HasSubstr("zb-h1"));
}

/// A pipeline of two stages in each of two sites. Weights of 8 MiB a stage: a gather and a scatter
/// of two members send half of them each way, so that 2 * (4 + 4) MiB cross, and no message does.
TEST(TraceSummary, CountsTheBytesOfDataParallelism) {
  const TempDir dir;
  const std::string trace = dir.path("t.h5");
  const std::string scenario = dir.write("dp.toml", R"([costs]
forward = "2ms"
dgrad = "2ms"
wgrad = "2ms"
activation = "2MiB"
message = "1MiB"
weights = "8MiB"
[parallel]
stages = 2
replicas = 2
microbatches = 4
gradient_sync = "zero1"
[[datacenter]]
name = "west"
replicas = [0]
[[datacenter]]
name = "east"
replicas = [1]
[[link]]
between = ["west", "east"]
latency = "2ms"
bandwidth = "8Gbps"
)");
  ASSERT_EQ(longhaul_run({"simulate", scenario, "--schedule", "1f1b", "--out", trace}).code, 0);
  const Outcome text = longhaul_run({"trace", "summary", trace});
  EXPECT_THAT(text.out, HasSubstr("bytes between datacenters in an iteration\n"
                                  "schedule  between    messages  data parallelism  together\n"));
  EXPECT_THAT(text.out, HasSubstr("1f1b      west>east       0 B            16 MiB    16 MiB\n"
                                  "1f1b      east>west       0 B            16 MiB    16 MiB\n"));
  const auto traffic =
      longhaul_run({"trace", "summary", trace, "--json"}).json()["schedules"][0]["traffic"];
  ASSERT_EQ(traffic.size(), 4U);  // inside each, and both ways between them
  EXPECT_EQ(traffic[0]["message_bytes"], 8 << 20) << "4 activations and 4 gradients in west";
  EXPECT_EQ(traffic[1]["data_parallel_bytes"], 16 << 20);
  const auto simulated = longhaul_run({"simulate", scenario, "--schedule", "1f1b", "--json"});
  EXPECT_EQ(simulated.json()["schedules"][0]["traffic"], traffic) << "rows that are not kept";
}

TEST(RelayedTrace, SummaryCountsTheMessagesOfEveryLeg) {
  const TempDir dir;
  const std::string trace = dir.path("t.h5");
  const Outcome run =
      longhaul_run({"simulate", dir.write("s.toml", kTwoSites), "--set", "parallel.replicas=2",
                    "--set", "parallel.cell=2", "--set", "parallel.gradient_sync=none",
                    "--schedule", "1f1b,atlas", "--out", trace});
  ASSERT_EQ(run.code, 0) << run.err;
  const Outcome summary = longhaul_run({"trace", "summary", trace, "--json"});
  ASSERT_EQ(summary.code, 0) << summary.err;
  const auto schedules = summary.json()["schedules"];
  ASSERT_EQ(schedules.size(), 2U);
  const auto& alone = schedules[0]["legs"];
  const auto& shared = schedules[1]["legs"];
  EXPECT_EQ(alone["wan"]["messages"], 0);
  // Both pipelines' messages over the WAN in two pieces, one of them by way of the other's rank.
  const std::int64_t messages = shared["wan"]["messages"].get<std::int64_t>() / 2;
  EXPECT_GT(messages, 0);
  EXPECT_EQ(shared["scatter"]["messages"], messages);
  EXPECT_EQ(shared["gather"]["messages"], messages);
  EXPECT_EQ(alone["whole"]["messages"].get<std::int64_t>(),
            shared["whole"]["messages"].get<std::int64_t>() + messages);
  EXPECT_EQ(
      alone["whole"]["bytes"].get<std::int64_t>(),
      shared["whole"]["bytes"].get<std::int64_t>() + shared["wan"]["bytes"].get<std::int64_t>());
  const std::string text = longhaul_run({"trace", "summary", trace}).out;
  EXPECT_THAT(text, HasSubstr("scatter"));
  EXPECT_THAT(text, Not(HasSubstr("1f1b      whole")));
}

TEST_F(SimulatedTrace, AttributionRepeatsIdleTimeAndCrossings) {
  const Outcome run = longhaul_run({"trace", "attribution", trace_, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto schedules = run.json()["schedules"];
  ASSERT_EQ(schedules.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& predicted = schedules[i]["predicted"];
    EXPECT_TRUE(schedules[i]["measured"].is_null());
    EXPECT_EQ(predicted["makespan_ns"], records_[i]["makespan_ns"]);
    EXPECT_EQ(predicted["idle"], records_[i]["idle"]);
    const auto& path = predicted["critical_path"];
    EXPECT_EQ(path["wan_crossings"], records_[i]["wan_crossings_on_critical_path"]);
    EXPECT_EQ(path["steps"].front()["start_ns"], 0);
    EXPECT_EQ(path["steps"].back()["end_ns"], records_[i]["makespan_ns"]);
  }
  const Outcome text = longhaul_run({"trace", "attribution", trace_, "--schedule", "1f1b"});
  EXPECT_THAT(text.out, HasSubstr("=WAN=>"));
  EXPECT_THAT(text.out, HasSubstr("busy"));
  EXPECT_THAT(text.out, ::testing::Not(HasSubstr("zb-h1")));
}

TEST_F(SimulatedTrace, ExportsForPerfetto) {
  const std::string file = dir_.path("t.json");
  const Outcome run =
      longhaul_run({"trace", "export", trace_, "--format", "chrome", "--out", file});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto events = nlohmann::json::parse(testing::file_text(file))["traceEvents"];
  const auto blocks = std::count_if(events.begin(), events.end(), [](const auto& event) {
    return event["ph"] == "X" && event.value("cat", "") == "W";
  });
  EXPECT_GE(blocks, 4 * 8);
  EXPECT_EQ(longhaul_run({"trace", "export", trace_, "--out", file}).code, 2);  // it exists
}

TEST_F(SimulatedTrace, ExportsOneScheduleByItsName) {
  const std::string all = dir_.path("all.csv"), one = dir_.path("one.csv");
  ASSERT_EQ(longhaul_run({"trace", "export", trace_, "--format", "csv", "--out", all}).code, 0);
  ASSERT_EQ(longhaul_run(
                {"trace", "export", trace_, "--format", "csv", "--out", one, "--schedule", "zb-h1"})
                .code,
            0);
  EXPECT_THAT(testing::file_text(all), HasSubstr("1f1b"));
  EXPECT_THAT(testing::file_text(one), HasSubstr("zb-h1"));
  EXPECT_THAT(testing::file_text(one), ::testing::Not(HasSubstr("1f1b")));
}

TEST_F(SimulatedTrace, ExportsMemoryThatPeaksWhereTheRecordSays) {
  const std::string file = dir_.path("memory.csv");
  const Outcome run = longhaul_run(
      {"trace", "export", trace_, "--format", "memory", "--out", file, "--schedule", "1f1b"});
  ASSERT_EQ(run.code, 0) << run.err;
  std::istringstream lines{testing::file_text(file)};
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "source,schedule,iteration,rank,device,time_ns,activation_bytes");
  std::int64_t peak_of_first_rank = 0;
  while (std::getline(lines, line)) {
    ASSERT_THAT(line, ::testing::StartsWith("predicted,1f1b,0,"));
    const std::int64_t held = std::stoll(line.substr(line.rfind(',') + 1));
    EXPECT_GE(held, 0);
    if (line.starts_with("predicted,1f1b,0,0,0,"))
      peak_of_first_rank = std::max(peak_of_first_rank, held);
  }
  EXPECT_EQ(peak_of_first_rank, 4 * (2 << 20));  // 1F1B holds P activations on its first device
}

TEST_F(SimulatedTrace, HasNoMeasuredIterationToChoose) {
  const std::string out = dir_.path("x.json");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"trace", "export", trace_, "--iteration", "9", "--out", out},
        std::vector<std::string>{"trace", "attribution", trace_, "--iteration", "9"}}) {
    const Outcome run = longhaul_run(arguments);
    EXPECT_EQ(run.code, 2) << arguments[1];
    EXPECT_THAT(run.err, HasSubstr("no iteration of 1f1b was measured"));
  }
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(SimulatedTrace, BadInputIsRefused) {
  const std::string out = dir_.path("x.json");
  const std::vector<std::pair<std::vector<std::string>, std::string>> slips{
      {{"summary", dir_.path("none.h5")}, "no such file"},
      {{"summary", trace_, "--schedule", "zb-h"}, "Did you mean \"zb-h1\"?"},
      {{"export", trace_}, "--out is missing"},
      {{"export", trace_, "--out", out, "--format", "crome"}, "Did you mean \"chrome\"?"},
      {{"merge", trace_, "--out", out}, "is no directory"},
      {{"merge", dir_.path("")}, "--out is missing"}};
  for (const auto& [extra, answer] : slips) {
    std::vector<std::string> arguments{"trace"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    const Outcome run = longhaul_run(arguments);
    EXPECT_EQ(run.code, 2) << answer;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(answer));
    EXPECT_FALSE(std::filesystem::exists(out));
  }
}

/// A run's directory with two ranks, as a benchmark leaves it: three iterations that took the
/// predicted time, 10% more, and 20% more; a fourth that rank 1 did not finish.
class RunDirectory : public ::testing::Test {
protected:
  void SetUp() override {
    Timeline timeline;
    timeline.schedules = {"1f1b"};
    timeline.datacenters = {"west"};
    timeline.lanes = {"compute"};
    trace::RunInfo info;
    info.creator = "test";
    info.environment = "{}";
    for (int rank = 0; rank < 2; ++rank) timeline.rows.push_back(block(rank, 0, 1000));
    trace::begin_run(run_, info, timeline, 2);
    for (int iteration = 0; iteration < 4; ++iteration) {
      for (int rank = 0; rank < (iteration < 3 ? 2 : 1); ++rank) {
        timeline.rows = {block(rank, iteration, 1000 + 100 * iteration)};
        trace::write_segment(run_, {0, iteration, rank}, timeline);
      }
    }
  }
  static TimelineRow block(int rank, int iteration, std::int64_t time) {
    TimelineRow row;
    row.op = rank;
    row.rank = row.device = row.chunk = rank;
    row.iteration = iteration;
    row.microbatch = MicrobatchId{0};
    row.planned_ns = 1000;
    row.end_ns = time;
    return row;
  }
  TempDir dir_;
  std::string run_ = dir_.path("run");
};

TEST_F(RunDirectory, SummaryComparesWhatIsFinishedWithThePrediction) {
  const Outcome run = longhaul_run({"trace", "summary", run_, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto record = run.json()["schedules"][0];
  EXPECT_EQ(record["n"], 3);
  EXPECT_EQ(record["measured_min_ns"], 1000);
  EXPECT_EQ(record["measured_median_ns"], 1100);
  EXPECT_EQ(record["predicted_ns"], 1000);
  EXPECT_NEAR(record["difference_percent"], 10.0, 1e-9);
}

TEST_F(RunDirectory, MergesIntoATraceThatValidates) {
  const std::string merged = dir_.path("merged.h5");
  const Outcome run = longhaul_run({"trace", "merge", run_, "--out", merged, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.json()["measured_rows"], 6);
  EXPECT_EQ(longhaul_run({"check", merged}).code, 0);
  EXPECT_EQ(longhaul_run({"check", run_}).code, 0);
}

TEST_F(RunDirectory, AttributionShowsTheIterationThatWasAskedFor) {
  const Outcome run = longhaul_run({"trace", "attribution", run_, "--iteration", "2", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto measured = run.json()["schedules"][0]["measured"];
  EXPECT_EQ(measured["iterations"], 3);
  EXPECT_EQ(measured["critical_path"]["iteration"], 2);
  EXPECT_EQ(measured["critical_path"]["steps"].back()["end_ns"], 1200);
}

TEST_F(RunDirectory, SaysWhichIterationsThereAre) {
  const std::string out = dir_.path("x.csv");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"trace", "export", run_, "--iteration", "9", "--out", out},
        std::vector<std::string>{"trace", "attribution", run_, "--iteration", "9"}}) {
    const Outcome run = longhaul_run(arguments);
    EXPECT_EQ(run.code, 2) << arguments[1];
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("1f1b has no measured iteration 9 (there are 0, 1, 2)"));
  }
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(RunDirectory, ExportsOneIterationBesideThePrediction) {
  const std::string out = dir_.path("one.csv");
  const Outcome run = longhaul_run(
      {"trace", "export", run_, "--format", "csv", "--iteration", "2", "--out", out, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.json()["measured_rows"], 2);
  EXPECT_EQ(run.json()["predicted_rows"], 2);
  const std::string text = testing::file_text(out);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 4);
  EXPECT_THAT(text, HasSubstr("measured,1f1b,2,"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("measured,1f1b,1,")));
}

}  // namespace
}  // namespace longhaul::test
