// Whole runs of bench_pipeline whose links change: what the ranks notice, when they switch, and
// what is left.
#include <map>

#include <fmt/format.h>

#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Four stages of which the links matter; blocks long enough for a busy machine.
constexpr const char* kFarStages = R"([scenario]
name = "far"
[costs]
forward = "5ms"
dgrad = "5ms"
wgrad = "5ms"
activation = "2MiB"
message = "1MiB"
weights = "1MiB"
[parallel]
stages = 4
microbatches = 8
[[datacenter]]
name = "west"
stages = [0, 1]
[[datacenter]]
name = "east"
stages = [2, 3]
[[link]]
between = ["west", "east"]
latency_ratio = 0.25
transfer_ratio = 0.25
)";

class AdaptiveTest : public BenchPipeline {
protected:
  AdaptiveTest() { write_scenario(kFarStages); }

  static std::vector<json> events(const json& record, const std::string& what) {
    std::vector<json> found;
    for (const json& event : record["switches"])
      if (event["event"] == what) found.push_back(event);
    return found;
  }
  /// The schedule that the trace names for each measured iteration.
  static std::map<int, std::string> schedules_by_iteration(const trace::Trace& trace) {
    std::map<int, std::string> names;
    for (const TimelineRow& row : trace.measured.rows)
      names[row.iteration] = trace.measured.schedules[static_cast<std::size_t>(row.schedule)];
    return names;
  }
  /// Blocks of `device` in the order in which they ran.
  static std::vector<std::string> order(const Timeline& timeline, const std::string& schedule,
                                        int iteration, int device) {
    std::map<std::int64_t, std::string> by_op;
    for (const TimelineRow& row : timeline.rows)
      if (row.iteration == iteration && row.device == device && is_compute(row.kind) &&
          timeline.schedules[static_cast<std::size_t>(row.schedule)] == schedule)
        by_op[row.start_ns] =
            fmt::format("{}{}.{}", to_string(row.kind), row.chunk, row.microbatch);
    std::vector<std::string> blocks;
    for (const auto& [start, block] : by_op) blocks.push_back(block);
    return blocks;
  }
  /// Expects the planned order in the first iteration of each segment, on every device, and a
  /// prediction of it.
  static void expect_planned_orders(const trace::Trace& trace, const json& segments) {
    for (const json& segment : segments) {
      const auto name = segment["schedule"].get<std::string>();
      for (int device = 0; device < 4; ++device) {
        const auto planned = order(trace.predicted, name, 0, device);
        EXPECT_THAT(planned, Not(IsEmpty())) << name << ": a prediction of each stretch";
        EXPECT_EQ(order(trace.measured, name, segment["first_iteration"], device), planned) << name;
      }
    }
  }
};

/// gpipe waits for a long link twice, the others again and again: the selection turns with the
/// links. The budget lets gpipe hold all microbatches.
TEST_F(AdaptiveTest, SwitchesWhenTheLinksChangeAndIsFasterThen) {
  const std::vector<std::string> common{"--iterations",           "14",    "--change",
                                        "3:link.latency_ratio=8", "--set", "memory.budget=2"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), common.begin(), common.end());
    return words;
  };
  ASSERT_EQ(run(4, with({"--schedule", "1f1b,zb-h1,gpipe", "--adaptive", "--switch-threshold",
                         "300", "--out", out()})),
            0)
      << output();
  const json adaptive = record();
  const auto switches = events(adaptive, "switch");
  ASSERT_EQ(switches.size(), 1u) << output();
  const int switched = switches[0]["iteration"].get<int>();
  EXPECT_GT(switched, 3);
  EXPECT_EQ(events(adaptive, "change").at(0)["iteration"], 3);
  const auto noticed = events(adaptive, "deviation");
  ASSERT_EQ(noticed.size(), 1u) << output();
  EXPECT_GE(noticed[0]["iteration"].get<int>(), 3);
  for (const json& link : noticed[0]["profile"]["links"]) {
    EXPECT_EQ(link["played_latency_ns"], 40'000'000);
    EXPECT_TRUE(link.contains("latency_error_percent"));
    EXPECT_TRUE(link.contains("transfer_error_percent"));
  }

  const auto& segments = adaptive["schedules"];
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[1]["schedule"], segments[0]["schedule"].get<std::string>() + "+change@3");
  EXPECT_EQ(segments[2]["schedule"], fmt::format("gpipe@{}", switched));
  EXPECT_EQ(segments[0]["first_iteration"], 0);
  EXPECT_EQ(segments[1]["first_iteration"], 3);
  EXPECT_EQ(segments[2]["first_iteration"], switched);
  EXPECT_LT(segments[2]["predicted_ns"], segments[1]["predicted_ns"]) << "exact: simulated";
  for (const json& segment : segments) EXPECT_EQ(segment["check"], "ok");

  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
  const trace::Trace trace = trace::read_trace(out() + "/trace.h5");
  EXPECT_THAT(trace.info.environment, HasSubstr(R"("event":"switch")"));
  const auto names = schedules_by_iteration(trace);
  ASSERT_EQ(names.size(), 14u);
  for (const auto& [iteration, name] : names) {
    const json& segment = segments[iteration < 3 ? 0 : iteration < switched ? 1 : 2];
    EXPECT_EQ(name, segment["schedule"]) << iteration;
  }
  expect_planned_orders(trace, segments);

  // Without --adaptive the order stays, and the prediction with it.
  const auto kept = segments[0]["schedule"].get<std::string>();
  std::filesystem::remove_all(out());
  ASSERT_EQ(run(4, with({"--schedule", kept, "--out", out()})), 0) << output();
  const json still = record();
  ASSERT_EQ(still["schedules"].size(), 2u);
  EXPECT_EQ(still["schedules"][0]["predicted_ns"], segments[0]["predicted_ns"]);
  EXPECT_EQ(still["schedules"][1]["predicted_ns"], segments[1]["predicted_ns"]);
  EXPECT_EQ(still["schedules"][1]["n"], 11);
  EXPECT_THAT(events(still, "switch"), IsEmpty());
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
}

TEST_F(AdaptiveTest, AChangeBelowTheThresholdDoesNotSwitch) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b,zb-h1", "--adaptive", "--switch-threshold", "1000",
                    "--iterations", "6", "--change", "2:link.latency_ratio=1.25", "--out", out()}),
            0)
      << output();
  const json adaptive = record();
  EXPECT_EQ(events(adaptive, "change").size(), 1u);
  EXPECT_THAT(events(adaptive, "deviation"), IsEmpty());
  EXPECT_THAT(events(adaptive, "switch"), IsEmpty());
  EXPECT_EQ(adaptive["schedules"].size(), 2u);
  EXPECT_GT(adaptive["schedules"][1]["predicted_ns"], adaptive["schedules"][0]["predicted_ns"]);
}

/// Any number of changes, given in any order; those of one iteration are one change.
TEST_F(AdaptiveTest, ChangesComeInTheOrderOfTheirIterations) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "5", "--warmup", "0", "--change",
                    "4:link.latency_ratio=0.25", "--change", "2:link.latency_ratio=2", "--change",
                    "2:link.transfer_ratio=1", "--out", out()}),
            0)
      << output();
  const json segments = record()["schedules"];
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[1]["schedule"], "1f1b+change@2");
  EXPECT_EQ(segments[2]["schedule"], "1f1b+change@4");
  EXPECT_GT(segments[1]["predicted_ns"], segments[0]["predicted_ns"]);
  EXPECT_GT(segments[1]["predicted_ns"], segments[2]["predicted_ns"]);
  EXPECT_GT(segments[2]["predicted_ns"], segments[0]["predicted_ns"]) << "transfers stay long";
}

/// The table of regions is looked up beside the scenario, by changes as by the scenario itself.
TEST_F(AdaptiveTest, ChangesReadTheTableOfRegionsBesideTheScenario) {
  std::string text = kFarStages;
  text.erase(text.find("[[link]]"));
  for (const auto& [name, region] : {std::pair{"west", "c:w"}, std::pair{"east", "c:e"}}) {
    const std::string line = fmt::format("name = \"{}\"\n", name);
    text.insert(text.find(line) + line.size(), fmt::format("region = \"{}\"\n", region));
  }
  write_scenario(text + "[wan]\nregions = \"pairs.csv\"\n");
  std::ofstream{scratch_.path() / "pairs.csv"}
      << "src_region,dst_region,rtt_avg_ms,throughput_received_bps\nc:w,c:e,4,8e9\n";
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "2", "--warmup", "0", "--change",
                    "1:link.latency=20ms", "--out", out()}),
            0)
      << output();
  const json segments = record()["schedules"];
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_GT(segments[1]["predicted_ns"], segments[0]["predicted_ns"]);
}

/// On the network as it is the truth is not known; the ranks measure all the same.
TEST_F(AdaptiveTest, AdaptsToTheNetworkAsItIs) {
  ASSERT_EQ(
      run(4, {"--schedule", "1f1b,zb-h1,gpipe", "--adaptive", "--emulate", "off", "--iterations",
              "8", "--set", "link.latency=400ms", "--set", "memory.budget=2", "--out", out()}),
      0)
      << output();
  const json adaptive = record();
  const auto noticed = events(adaptive, "deviation");
  ASSERT_FALSE(noticed.empty()) << "the scenario's 400 ms are not there";
  for (const json& link : noticed[0]["profile"]["links"]) {
    EXPECT_LT(link["latency_ns"], 200'000'000);
    EXPECT_FALSE(link.contains("played_latency_ns"));
  }
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
}

TEST_F(AdaptiveTest, BadChangesNameTheOption) {
  const std::vector<std::pair<std::string, std::string>> slips{
      {"link.latency_ratio=2", "no iteration in front"},
      {"x:link.latency_ratio=2", "no iteration in front"},
      {"0:link.latency_ratio=2", "Give 1 to 3"},
      {"4:link.latency_ratio=2", "Give 1 to 3"},
      {"2:parallel.stages=8", "only links and node interfaces"},
      {"2:link.latenci=2", "latency"},
      {"2:link.west-north.latency=2ms", "called \"west-north\""},
      {"2:link.latency=40", "unit"}};
  for (const auto& [change, complaint] : slips) {
    EXPECT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "4", "--change", change}), 2) << change;
    EXPECT_THAT(output(), AllOf(HasSubstr("--change " + change), HasSubstr(complaint)));
  }
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--emulate", "off", "--change", "1:link.latency=2ms"}),
            2);
  EXPECT_THAT(output(), HasSubstr("--change needs --emulate on"));
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--adaptive", "--switch-threshold", "0"}), 2);
  EXPECT_THAT(output(), HasSubstr("--switch-threshold"));
}

/// A search goes on beside the iterations when a rank dies: the run ends in time all the same.
TEST_F(AdaptiveTest, ARankThatDiesDuringASearchEndsTheRun) {
  EXPECT_NE(run(4, {"--schedule", "best", "--search-time", "5s", "--adaptive", "--iterations",
                    "1000", "--deadline", "2s", "--out", out(), "--change",
                    "1:link.latency_ratio=8", "--fault", "kill@2:4:4"}),
            0);
  EXPECT_THAT(output(), HasSubstr("rank 2 is gone"));
  EXPECT_LT(seconds_, 5 + 2 + 10 + 5) << "the first search, deadline, 10 s, and starting up";
  expect_readable(4);
}

}  // namespace
}  // namespace longhaul::testing
