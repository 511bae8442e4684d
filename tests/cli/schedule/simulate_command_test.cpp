#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SimulateCommand, PrintsTheKnownTimesOfTheStaticSchedulesAsJson) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const Outcome run = longhaul_run({"simulate", scenario, "--schedule", "static", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const auto answer = run.json();
  EXPECT_EQ(answer["schema_version"], 1);
  EXPECT_EQ(answer["numbers"], "simulated");
  EXPECT_EQ(answer["scenario"], "uniform");
  EXPECT_EQ(answer["comm"], "decoupled");
  EXPECT_TRUE(answer["git_commit"].is_string());
  EXPECT_EQ(answer["command_line"], "longhaul simulate " + scenario + " --schedule static --json");
  // Makespan and device span of SCHEDULES' table for P=4, M=8.
  const std::vector<std::tuple<std::string, int, int>> known{
      {"gpipe", 3300, 3300},   {"1f1b", 3300, 3300},  {"interleaved-1f1b", 2850, 2850},
      {"zb-h1", 2700, 2700},   {"zb-h2", 2700, 2400}, {"zbv", 2550, 2400},
      {"zbv-auto", 2550, 2400}};
  ASSERT_EQ(answer["schedules"].size(), known.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto& [name, makespan, span] = known[i];
    const auto& record = answer["schedules"][i];
    EXPECT_EQ(record["schedule"], name);
    EXPECT_EQ(record["makespan_ns"], makespan) << name;
    EXPECT_EQ(record["device_span_ns"], span) << name;
    EXPECT_DOUBLE_EQ(record["per_microbatch_ns"], makespan / 8.0) << name;
    EXPECT_EQ(record["bubble_ratio"].size(), 4U);
    for (const auto& bubble : record["bubble_ratio"])
      EXPECT_DOUBLE_EQ(bubble, 1.0 - 2400.0 / makespan) << name;
    EXPECT_EQ(record["wan_crossings_on_critical_path"], 0) << name;
    EXPECT_TRUE(record["tokens_per_second"].is_null());
    EXPECT_TRUE(record["mfu"].is_null());
  }
}

TEST(SimulateCommand, ReportsPeakActivationsInActivationsOfAStage) {
  const TempDir dir;
  const Outcome run =
      longhaul_run({"simulate", dir.write("s.toml", kUniform), "--schedule", "static", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  std::map<std::string, nlohmann::json> records;
  const auto answer = run.json();
  for (const auto& record : answer["schedules"]) records[record["schedule"]] = record;
  EXPECT_THAT(records["gpipe"]["peak_activation"], ElementsAre(8.0, 8.0, 8.0, 8.0));
  EXPECT_THAT(records["1f1b"]["peak_activation"], ElementsAre(4.0, 3.0, 2.0, 1.0));
  EXPECT_THAT(records["interleaved-1f1b"]["peak_activation"], ElementsAre(5.5, 4.5, 3.5, 2.5));
  EXPECT_THAT(records["zb-h1"]["peak_activation"], ElementsAre(4.0, 3.5, 3.0, 2.5));
  EXPECT_THAT(records["zb-h2"]["peak_activation"], ElementsAre(7.0, 6.0, 5.0, 4.0));
  EXPECT_THAT(records["zbv"]["peak_activation"], ElementsAre(4.0, 4.0, 4.0, 4.0));
  EXPECT_THAT(records["gpipe"]["over_budget"], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(records["1f1b"]["over_budget"], ElementsAre());
  EXPECT_THAT(records["zb-h2"]["over_budget"], ElementsAre(0, 1, 2));
}

TEST(SimulateCommand, IdlePartsAddUpToTheBubbles) {
  const TempDir dir;
  const Outcome run =
      longhaul_run({"simulate", dir.write("s.toml", kTwoSites), "--schedule", "static", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto answer = run.json();
  for (const auto& record : answer["schedules"]) {
    std::int64_t idle = 0;
    for (const auto& [name, time] : record["idle"].items()) idle += time.get<std::int64_t>();
    EXPECT_EQ(idle, 4 * (record["makespan_ns"].get<std::int64_t>() - 2400)) << record["schedule"];
    for (const char* part : {"dependency", "link_wait", "memory"})
      EXPECT_TRUE(record["idle"].contains(part)) << part;
  }
}

TEST(SimulateCommand, LatencyBetweenTwoDatacentersCostsWhatIsKnown) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const std::map<std::string, std::vector<int>> known{{"50ns", {3400, 3700, 3150, 2900, 2800}},
                                                      {"100ns", {3500, 4100, 3500, 3300, 3100}},
                                                      {"400ns", {4100, 6500, 7100, 5700, 6100}}};
  for (const auto& [latency, makespans] : known) {
    const Outcome run =
        longhaul_run({"simulate", scenario, "--schedule", "gpipe,1f1b,interleaved-1f1b,zb-h1,zbv",
                      "--set", "link.latency=" + latency, "--json"});
    ASSERT_EQ(run.code, 0) << run.err;
    const auto records = run.json()["schedules"];
    ASSERT_EQ(records.size(), makespans.size());
    for (std::size_t i = 0; i < makespans.size(); ++i)
      EXPECT_EQ(records[i]["makespan_ns"], makespans[i]) << latency << records[i]["schedule"];
    EXPECT_GT(records[1]["wan_crossings_on_critical_path"], 0);
  }
}

TEST(SimulateCommand, NothingEndsBeforeItsBound) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const std::vector<std::vector<std::string>> settings{{"link.latency=0ns"},
                                                       {"link.latency=400ns"},
                                                       {"link.transfer_ratio=2"},
                                                       {"memory.budget=2"},
                                                       {"costs.backward=150ns"}};
  for (const auto& setting : settings) {
    const Outcome run =
        longhaul_run({"simulate", scenario, "--schedule", "static,dynamic,best", "--search-moves",
                      "100", "--set", setting.front(), "--bounds", "--json"});
    ASSERT_EQ(run.code, 0) << run.err;
    const auto answer = run.json();
    for (const auto& record : answer["schedules"]) {
      EXPECT_GT(record["lower_bound_ns"], 0) << record["schedule"];
      EXPECT_LE(record["lower_bound_ns"], record["makespan_ns"])
          << record["schedule"] << setting.front();
      EXPECT_GE(record["gap"], 0.0);
      EXPECT_NE(record["bound_holds_for"], "");
      if (!record.contains("planning")) continue;
      EXPECT_LE(record["planning"]["lower_bound_ns"], record["lower_bound_ns"])
          << "its own placement is one of those";
    }
  }
}

TEST(SimulateCommand, BoundsAreThereWhereTheyAreAskedForAndOfBest) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const std::vector<std::string> plain{"simulate",  scenario,         "--schedule",
                                       "1f1b,best", "--search-moves", "100"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), plain.begin(), plain.end());
    return longhaul_run(more);
  };
  const auto records = with({"--json"}).json()["schedules"];
  for (const char* key : {"lower_bound_ns", "gap", "bound_holds_for", "bound_reason"}) {
    EXPECT_TRUE(records[0].contains(key)) << key;
    EXPECT_TRUE(records[0][key].is_null()) << key;
    EXPECT_FALSE(records[1][key].is_null()) << key;
  }
  const auto bounded = with({"--json", "--bounds"}).json()["schedules"];
  EXPECT_GT(bounded[0]["gap"], 0.0);
  EXPECT_EQ(bounded[1], records[1]);
  EXPECT_THAT(with({}).out, HasSubstr("--bounds shows"));
  EXPECT_THAT(with({"--bounds"}).out, Not(HasSubstr("--bounds shows")));
  const std::string alone = longhaul_run({"simulate", scenario, "--schedule", "1f1b"}).out;
  EXPECT_THAT(alone, Not(HasSubstr("gap")));
  EXPECT_THAT(alone, Not(HasSubstr("Gaps")));
}

TEST(SimulateCommand, AnswersTheSameOnAnyNumberOfThreads) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const auto on = [&](const std::string& threads) {
    return longhaul_run({"simulate", scenario, "--schedule", "static,dynamic", "--search-threads",
                         threads, "--set", "parallel.microbatches=9"});
  };
  const Outcome one = on("1");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("skipped interleaved-1f1b"));
  for (const char* threads : {"2", "7"}) EXPECT_EQ(on(threads).out, one.out) << threads;
}

TEST(SimulateCommand, PrintsATableForPeople) {
  const TempDir dir;
  const Outcome run =
      longhaul_run({"simulate", dir.write("s.toml", kUniform), "--schedule", "1f1b,zb-h2"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("makespan [us]"));
  EXPECT_THAT(run.out, HasSubstr("1f1b"));
  EXPECT_THAT(run.out, HasSubstr("3.300"));
  EXPECT_THAT(run.out, HasSubstr("7.00 !"));
  EXPECT_THAT(run.out, HasSubstr("! over the budget of 4 activations"));
  EXPECT_THAT(run.out, HasSubstr("zb-h2: devices 0-2"));
  EXPECT_THAT(run.out, Not(HasSubstr("1f1b: device")));
  EXPECT_THAT(run.out, Not(HasSubstr("tokens/s")));  // no model is named
}

TEST(SimulateCommand, SaysWhatPredictionsLeaveOut) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::vector<std::string> plain{"simulate", scenario, "--schedule", "1f1b"};
  EXPECT_THAT(longhaul_run(plain).out, Not(HasSubstr("leave out")));
  std::vector<std::string> rough = plain;
  rough.insert(rough.end(), {"--set", "run.noise=0.1", "--set", "run.stragglers=[1, 1, 2, 1]"});
  EXPECT_THAT(longhaul_run(rough).out,
              HasSubstr("predictions leave out run.noise and run.stragglers"));
  rough.push_back("--json");
  EXPECT_THAT(longhaul_run(rough).json()["ignored"], ElementsAre("run.noise", "run.stragglers"));
}

TEST(SimulateCommand, CountsInTheSingular) {
  const TempDir dir;
  const Outcome run = longhaul_run({"simulate", dir.write("s.toml", kUniform), "--schedule", "1f1b",
                                    "--set", "parallel.microbatches=1"});
  EXPECT_THAT(run.out, HasSubstr("uniform: 4 stages, 1 replica, 1 microbatch; simulated"));
}

TEST(SimulateCommand, ReportsHowBusyLinksWere) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const std::vector<std::string> arguments{"simulate", scenario, "--schedule",
                                           "1f1b",     "--set",  "link.transfer_ratio=0.5"};
  std::vector<std::string> with_json = arguments;
  with_json.push_back("--json");
  const auto answer = longhaul_run(with_json).json();
  const auto& record = answer["schedules"][0];
  ASSERT_EQ(record["resources"].size(), 6U);  // both directions of three boundaries
  for (const auto& use : record["resources"]) {
    const std::string name = use["resource"];
    const bool wan = name == "link 1>2" || name == "link 2>1";
    EXPECT_EQ(use["holds"], 8) << name;
    EXPECT_EQ(use["busy_ns"], wan ? 8 * 50 : 0) << name;
    EXPECT_DOUBLE_EQ(use["busy_ratio"],
                     use["busy_ns"].get<double>() / record["makespan_ns"].get<double>());
  }
  const std::string text = longhaul_run(arguments).out;
  EXPECT_THAT(text, HasSubstr("link 1>2"));
  EXPECT_THAT(text, Not(HasSubstr("link 0>1")));
}

TEST(SimulateCommand, GroupedCommunicationIsNoFaster) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const Outcome decoupled = longhaul_run({"simulate", scenario, "--schedule", "1f1b", "--json"});
  const Outcome grouped =
      longhaul_run({"simulate", scenario, "--schedule", "1f1b", "--comm", "grouped", "--json"});
  ASSERT_EQ(grouped.code, 0) << grouped.err;
  EXPECT_EQ(grouped.json()["comm"], "grouped");
  EXPECT_GE(grouped.json()["schedules"][0]["makespan_ns"],
            decoupled.json()["schedules"][0]["makespan_ns"]);
}

TEST(SimulateCommand, TwoRunsGiveTheSameBytes) {
  const TempDir dir;
  const std::vector<std::string> arguments{"simulate", dir.write("s.toml", kTwoSites), "--schedule",
                                           "static", "--json"};
  EXPECT_EQ(longhaul_run(arguments).out, longhaul_run(arguments).out);
}

TEST(SimulateCommand, AdaptsBatchesAndRateOfAStream) {
  const TempDir dir;
  const std::string scenario = testing::in_checkout("benchmarks/scenarios/stella-adapt.toml");
  const auto adapt = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"simulate", scenario, "--schedule", "stella", "--iterations"};
    words.emplace_back("40");
    words.insert(words.end(), more.begin(), more.end());
    return longhaul_run(words);
  };
  const Outcome run = adapt({"--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto answer = run.json();
  ASSERT_EQ(answer["adaptation"].size(), 3U);
  EXPECT_EQ(answer["adaptation"], answer["stream"]["adaptation"]);
  EXPECT_EQ(answer["adaptation"][0]["iteration"], 13);
  EXPECT_EQ(answer["adaptation"][0]["batch"].size(), 4U);
  EXPECT_THAT(adapt({}).out, HasSubstr("Batches and rate of stella, adapted while it ran:"));
  const std::string probes = dir.write(
      "p.csv", "model,batch,compression_rate,g\nswin_b,8,0,0\nswin_b,9,0,0\nswin_b,9,1,0\n");
  const Outcome refused = adapt({"--set", "train.adapt.probes=" + probes});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("probes of swin_b, and stella-adapt trains vit-b-16"));
}

// `simulate --iterations N`: iterations back to back under the weather of the links.

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
