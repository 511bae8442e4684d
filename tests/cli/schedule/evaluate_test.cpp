// Which schedules a command gets for --schedule, what is said about the others; and `simulate
// --iterations N`: iterations back to back under the weather of the links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ChosenSchedules, StaticSkipsWhatIsNotDefinedAndNamingItIsAnError) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::vector<std::string> odd{"--set", "parallel.microbatches=9"};
  Outcome run =
      longhaul_run({"simulate", scenario, "--schedule", "static", "--json", odd[0], odd[1]});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto answer = run.json();
  EXPECT_EQ(answer["schedules"].size(), 6U);
  ASSERT_EQ(answer["skipped"].size(), 1U);
  EXPECT_EQ(answer["skipped"][0]["schedule"], "interleaved-1f1b");
  EXPECT_NE(answer["skipped"][0]["reason"], "");

  run = longhaul_run({"simulate", scenario, "--schedule", "static", odd[0], odd[1]});
  EXPECT_THAT(run.out, HasSubstr("skipped interleaved-1f1b: "));

  run = longhaul_run({"simulate", scenario, "--schedule", "1f1b,interleaved-1f1b", odd[0], odd[1]});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
}

TEST(ChosenSchedules, StaticSkipsWhatALinkIsMissingFor) {
  const TempDir dir;
  // Chunks that go round the devices pass from east straight back to west.
  const std::string scenario = dir.write("chain.toml", R"([parallel]
stages = 3
microbatches = 6
[costs]
forward = "100ns"
[[datacenter]]
name = "west"
stages = [0]
[[datacenter]]
name = "middle"
stages = [1]
[[datacenter]]
name = "east"
stages = [2]
[[link]]
between = ["west", "middle"]
latency = "100ns"
[[link]]
between = ["middle", "east"]
latency = "100ns"
)");
  Outcome run = longhaul_run({"simulate", scenario, "--schedule", "static", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto answer = run.json();
  EXPECT_EQ(answer["schedules"].size(), 6U);
  ASSERT_EQ(answer["skipped"].size(), 1U);
  EXPECT_EQ(answer["skipped"][0]["schedule"], "interleaved-1f1b");
  EXPECT_THAT(std::string{answer["skipped"][0]["reason"]}, HasSubstr("no link from"));

  run = longhaul_run({"simulate", scenario, "--schedule", "interleaved-1f1b"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("no link from"));
}

TEST(ChosenSchedules, AFileWhoseLinkOrderCannotHoldIsInvalid) {
  const TempDir dir;
  const std::string scenario = dir.write("two.toml", kTwoStages);
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"# link_order \"link 0>7\" = 0:0F1\n", "which no message takes"},
      {"# link_order \"link 0>1\" = 0:0F1,0:0F0\n", "deadlocks"}};
  for (const auto& [orders, answer] : wrong) {
    const std::string csv = dir.write("orders.csv", ordered_schedule(orders));
    for (const std::string comm : {"decoupled", "grouped"}) {
      const Outcome run = longhaul_run({"simulate", scenario, "--schedule", csv, "--comm", comm});
      EXPECT_EQ(run.code, 1) << comm;
      EXPECT_EQ(run.out, "");
      EXPECT_THAT(run.err, HasSubstr("orders.csv: "));
      EXPECT_THAT(run.err, HasSubstr(answer));
    }
  }
}

TEST(ChosenSchedules, ReplicasFollowTheRowsOfAFileThatGivesThemOnce) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::string csv = dir.path("x.csv");
  ASSERT_EQ(longhaul_run({"schedule", scenario, "--schedule", "zb-h1", "--out", csv}).code, 0);
  const Outcome run = longhaul_run({"simulate", scenario, "--schedule", "zb-h1," + csv, "--set",
                                    "parallel.replicas=2", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto records = run.json()["schedules"];
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0]["makespan_ns"], records[1]["makespan_ns"]);
  EXPECT_NE(records[0]["schedule"], records[1]["schedule"]);
  EXPECT_EQ(records[1]["bubble_ratio"].size(), 8U);
  EXPECT_EQ(records[1]["peak_activation"].size(), 4U);
}

TEST(ChosenSchedules, AnInvalidFileIsAnsweredWithItsFirstViolation) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  // Device 3 runs the backward of microbatch 0 before its forward.
  const std::string csv = dir.write("bad.csv", "0F0,0B0\n1F0,1B0\n2F0,2B0\n3B0,3F0\n");
  const Outcome run =
      longhaul_run({"simulate", scenario, "--schedule", csv, "--set", "parallel.microbatches=1"});
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("bad.csv: "));
  EXPECT_THAT(run.err, HasSubstr("device 3"));
}

Outcome simulate(const std::string& scenario, std::vector<std::string> more) {
  std::vector<std::string> words{"simulate", scenario, "--schedule", "gpipe"};
  words.insert(words.end(), more.begin(), more.end());
  return longhaul_run(words);
}

/// Two stages, F = 1 ms, B = 2 ms, two microbatches, messages of 1 MB at 1 Gbps, 10 ms apart: the
/// scenario of tests/integration/sim/weather_test.cpp. Calm: 1 + 8 + 10, two F and B after it, 18
/// and a B.
std::string two_sites(const std::string& weather) {
  return R"([scenario]
name = "two-sites"
[parallel]
stages = 2
microbatches = 2
[costs]
forward = "1ms"
backward = "2ms"
message = "1MB"
[[datacenter]]
name = "west"
stages = [0]
[[datacenter]]
name = "east"
stages = [1]
[[link]]
from = "east"
to = "west"
latency = "10ms"
bandwidth = "1Gbps"
[[link]]
from = "west"
to = "east"
latency = "10ms"
bandwidth = "1Gbps"
)" + weather;
}

constexpr const char* kStormy = "trace = \"steps.csv\"\noutage = [\"5ms\", \"2ms\"]\n";
constexpr const char* kSteps = "time_ms,latency_ms,bandwidth_gbps\n0,10,1\n13,20,0.5\n";

TEST(UnderWeather, IterationsFollowEachOther) {
  const TempDir dir;
  dir.write("steps.csv", kSteps);
  const std::string scenario = dir.write("s.toml", two_sites(kStormy));
  const Outcome run = simulate(scenario, {"--iterations", "3", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto row = run.json()["under_weather"][0];
  EXPECT_EQ(row["schedule"], "gpipe");
  // Computed by hand in tests/integration/sim/weather_test.cpp: 76 ms, then all after the step.
  //   m1 17..33 arrives 53, F1 53..54, B0 54..56, B1 56..58, g1 64..72 arrives 82, B1 82..84
  ASSERT_EQ(row["iterations"].size(), 3U);
  EXPECT_EQ(row["iterations"][0]["begin_ns"], 0);
  EXPECT_EQ(row["iterations"][0]["makespan_ns"], 76'000'000);
  EXPECT_EQ(row["iterations"][1]["begin_ns"], 76'000'000);
  EXPECT_EQ(row["iterations"][1]["makespan_ns"], 84'000'000);
  EXPECT_EQ(row["iterations"][2]["begin_ns"], 160'000'000);
  EXPECT_EQ(row["median_ns"], 84'000'000);
  EXPECT_EQ(row["min_ns"], 76'000'000);
  EXPECT_EQ(row["max_ns"], 84'000'000);
  EXPECT_EQ(row["all_ns"], 244'000'000);
  EXPECT_EQ(row["calm_ns"], run.json()["schedules"][0]["makespan_ns"]);
  EXPECT_EQ(run.json()["ignored"], nlohmann::json({"link.trace", "link.outage"}));
}

TEST(UnderWeather, HasATableWithMedianAndRange) {
  const TempDir dir;
  dir.write("steps.csv", kSteps);
  const std::string scenario = dir.write("s.toml", two_sites(kStormy));
  const Outcome run = simulate(scenario, {"--iterations", "2"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2 iterations back to back under weather (run.seed = 1):"));
  EXPECT_THAT(run.out, HasSubstr("80"));  // the mean of the middle two
  EXPECT_THAT(run.out, HasSubstr("predictions leave out link.trace and link.outage"));
  EXPECT_THAT(run.out, HasSubstr("; weather counts in its own table)"));
  EXPECT_THAT(simulate(scenario, {}).out, Not(HasSubstr("its own table")));
  EXPECT_THAT(simulate(scenario, {}).out, Not(HasSubstr("under weather")));
}

TEST(UnderWeather, IsCalmWithoutAny) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", two_sites(""));
  const Outcome run = simulate(scenario, {"--iterations", "4"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("which is calm"));
  const auto row = simulate(scenario, {"--iterations", "4", "--json"}).json()["under_weather"][0];
  EXPECT_EQ(row["min_ns"], row["calm_ns"]);
  EXPECT_EQ(row["max_ns"], row["calm_ns"]);
}

TEST(UnderWeather, FollowsTheSeedAlone) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", two_sites("jitter = 0.3\nloss = 0.2\n"));
  const auto all = [&](const std::string& seed) {
    return simulate(scenario, {"--iterations", "9", "--json", "--set", "run.seed=" + seed})
        .json()["under_weather"];
  };
  EXPECT_EQ(all("1"), all("1"));
  EXPECT_NE(all("1"), all("2"));
}

TEST(UnderWeather, RefusesWhatCannotBePlayed) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", two_sites(""));
  for (const char* count : {"0", "-3", "1000001"}) {
    const Outcome run = simulate(scenario, {"--iterations", count});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr("--iterations " + std::string{count} + " is out of range"));
  }
  EXPECT_EQ(simulate(scenario, {"--iterations", "many"}).code, 2);
  const Outcome ages = simulate(scenario, {"--iterations", "20", "--set", "costs.forward=20000h"});
  EXPECT_EQ(ages.code, 2);
  EXPECT_THAT(ages.err, HasSubstr("20 iterations of gpipe last longer than 73 years"));
}

}  // namespace
}  // namespace longhaul::test
