#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

TEST(ScheduleCommand, PrintsTheRecordOfSimulateAndWritesTheFile) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::string csv = dir.path("x.csv");
  const Outcome made =
      longhaul_run({"schedule", scenario, "--schedule", "zb-h1", "--out", csv, "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Outcome simulated =
      longhaul_run({"simulate", scenario, "--schedule", "zb-h1", "--bounds", "--json"});
  EXPECT_EQ(made.json()["schedules"], simulated.json()["schedules"]);
  EXPECT_EQ(made.json()["schedules"][0]["makespan_ns"], 2700);
  EXPECT_THAT(testing::file_text(csv), HasSubstr("0F0,0F1,0F2,0F3,0I0,0W0"));
}

TEST(ScheduleCommand, TellsTheTimesThatVarunaAndAtlasDecideBy) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const auto varuna =
      longhaul_run({"schedule", scenario, "--schedule", "varuna", "--json"}).json()["schedules"][0];
  ASSERT_EQ(varuna["timetable"]["rows"].size(), 4U);
  EXPECT_GE(varuna["timetable"]["end_ns"], varuna["makespan_ns"]);
  const auto first = varuna["timetable"]["rows"][0]["blocks"][0];
  EXPECT_EQ(first["kind"], "F");
  EXPECT_EQ(first["microbatch"], 0);
  EXPECT_EQ(first["start_ns"], 0);
  const auto other = longhaul_run({"schedule", scenario, "--schedule", "1f1b", "--json"}).json();
  EXPECT_FALSE(other["schedules"][0].contains("timetable"));
}

TEST(ScheduleCommand, PrintsStatisticsForPeople) {
  const TempDir dir;
  const Outcome run =
      longhaul_run({"schedule", dir.write("s.toml", kUniform), "--schedule", "zbv"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("zbv on uniform: 4 devices, 8 chunks, 8 microbatches"));
  EXPECT_THAT(run.out, HasSubstr("0 7"));  // the chunks of device 0
  EXPECT_THAT(run.out, HasSubstr("2.550"));
}

TEST(ScheduleCommand, NeverOverwrites) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::string csv = dir.write("x.csv", "mine");
  const Outcome run = longhaul_run({"schedule", scenario, "--schedule", "1f1b", "--out", csv});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("exists"));
  EXPECT_EQ(testing::file_text(csv), "mine");
  EXPECT_EQ(dir.files(), 2U);
}

TEST(ScheduleCommand, ReadsBackWhatItWroteInBothFormats) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  for (const std::string format : {"longhaul", "pytorch"}) {
    for (const std::string name : {"1f1b", "interleaved-1f1b", "zb-h2", "zbv"}) {
      const std::string csv = dir.path(name + "-" + format + ".csv");
      const Outcome made = longhaul_run(
          {"schedule", scenario, "--schedule", name, "--out", csv, "--format", format, "--json"});
      ASSERT_EQ(made.code, 0) << made.err;
      const Outcome read = longhaul_run({"schedule", scenario, "--schedule", csv, "--json"});
      ASSERT_EQ(read.code, 0) << read.err;
      auto expected = made.json()["schedules"][0];
      auto actual = read.json()["schedules"][0];
      expected.erase("schedule");  // the pytorch format holds no name
      actual.erase("schedule");
      EXPECT_EQ(actual, expected) << csv;
      EXPECT_EQ(longhaul_run({"check", csv}).code, 0);
    }
  }
}

TEST(ScheduleCommand, BadInputWritesNothing) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::string csv = dir.path("x.csv");
  const std::vector<std::pair<std::vector<std::string>, std::string>> slips{
      {{"--schedule", "1f1"}, "1f1b"},
      {{}, "--schedule is missing"},
      {{"--schedule", "1f1b,zb-h1"}, "names several"},
      {{"--schedule", "static"}, "names several"},
      {{"--schedule", "dynamic"}, "names several"},
      {{"--schedule", "1f1b", "--format", "pytroch"}, "Did you mean \"pytorch\"?"},
      {{"--schedule", "1f1b", "--format", "chackra"}, "Did you mean \"chakra\"?"},
      {{"--schedule", "cross-bd", "--format", "pytorch"}, "2 copies of the model"},
      {{"--schedule", "cross-bd", "--format", "pytorch"}, "--placement ud,loop,wave"},
      {{"--schedule", "1f1b", "--format", "goal", "--goal", "loggopsin"},
       "--goal: unknown simulator \"loggopsin\". Did you mean \"loggopsim\"?"},
      {{"--schedule", "1f1b", "--format", "goal", "--goal", "htsim"}, "Known: atlahs, loggopsim"},
      {{"--schedule", "1f1b", "--goal", "atlahs"}, "--goal: there is no GOAL file"},
      {{"--schedule", "1f1b", "--comm", "groupd"}, "Did you mean \"grouped\"?"},
      {{"--schedule", "1f1b", "--set", "paralel.stages=4"}, "parallel"},
      {{"--schedule", "missing.csv"}, "missing.csv: cannot be read"},
      {{"--schedule", "interleaved-1f1b", "--set", "parallel.microbatches=9"}, "interleaved"}};
  for (const auto& [extra, answer] : slips) {
    std::vector<std::string> arguments{"schedule", scenario, "--out", csv};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    const Outcome run = longhaul_run(arguments);
    EXPECT_EQ(run.code, 2) << answer;
    EXPECT_EQ(run.out, "") << answer;
    EXPECT_THAT(run.err, HasSubstr(answer));
    EXPECT_EQ(dir.files(), 1U) << answer;
  }
}

TEST(ScheduleCommand, BestKeepsToPlacementsThatPyTorchHolds) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const auto candidates = [&](const std::vector<std::string>& extra) {
    std::vector<std::string> arguments{"schedule",       scenario, "--schedule", "best",
                                       "--search-moves", "0",      "--json"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    const Outcome run = longhaul_run(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json()["schedules"][0]["planning"].dump();
  };
  EXPECT_THAT(candidates({}), HasSubstr("cross-bd"));
  const std::string kept = candidates({"--format", "pytorch", "--out", dir.path("x.csv")});
  EXPECT_THAT(kept, ::testing::Not(HasSubstr("cross-bd")));
  EXPECT_THAT(kept, HasSubstr("zbv"));
  EXPECT_THAT(candidates({"--format", "pytorch", "--placement", "ud"}),
              ::testing::Not(HasSubstr("zbv")));
}

TEST(ScheduleCommand, WritesGoalForTwoSimulators) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const auto write = [&](const std::string& name, const std::vector<std::string>& extra) {
    std::vector<std::string> arguments{"schedule", scenario, "--schedule", "1f1b",
                                       "--format", "goal",   "--out",      dir.path(name)};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return longhaul_run(arguments);
  };
  const Outcome usual = write("x.goal", {});
  ASSERT_EQ(usual.code, 0) << usual.err;
  EXPECT_THAT(usual.out, HasSubstr("wrote " + dir.path("x.goal") + ", for atlahs\n"));
  EXPECT_THAT(usual.out, HasSubstr("LogGOPSim takes -L 0 -G 0 -o 0"));
  EXPECT_THAT(testing::file_text(dir.path("x.goal")), HasSubstr("num_ranks 1\n"));
  ASSERT_EQ(write("named.goal", {"--goal", "atlahs"}).code, 0);
  EXPECT_EQ(testing::file_text(dir.path("named.goal")), testing::file_text(dir.path("x.goal")));
  const Outcome original = write("y.goal", {"--goal", "loggopsim"});
  ASSERT_EQ(original.code, 0) << original.err;
  EXPECT_THAT(original.out, HasSubstr("for loggopsim\n"));
  EXPECT_THAT(testing::file_text(dir.path("y.goal")), HasSubstr("num_ranks 4\n"));
  const Outcome grouped = write("z.goal", {"--comm", "grouped"});
  EXPECT_THAT(grouped.out, HasSubstr("LogGOPSim will not wait for receives"));
  const Outcome in_json = write("w.goal", {"--comm", "grouped", "--json"});
  EXPECT_THAT(in_json.json()["remarks"].dump(), HasSubstr("LogGOPSim will not wait for receives"));
}

TEST(ScheduleCommand, WritesAChakraTraceForEachRank) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::vector<std::string> arguments{
      "schedule", scenario, "--schedule",     "zbv",   "--format",
      "chakra",   "--out",  dir.path("x.et"), "--set", "parallel.replicas=1"};
  const Outcome run = longhaul_run(arguments);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(dir.files(), 5U);  // the scenario and four ranks
  EXPECT_THAT(run.out, HasSubstr("x.0.et to "));
  EXPECT_THAT(run.out, HasSubstr("192 blocks were rounded by "));
  EXPECT_FALSE(testing::file_text(dir.path("x.3.et")).empty());
  const Outcome again = longhaul_run(arguments);
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("x.0.et: not written (it exists"));
}

TEST(ScheduleCommand, OneChakraFileInTheWayLeavesAllUnwritten) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::string mine = dir.write("x.2.et", "mine");
  const Outcome run = longhaul_run(
      {"schedule", scenario, "--schedule", "zbv", "--format", "chakra", "--out", dir.path("x.et")});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("x.2.et: not written (it exists"));
  EXPECT_EQ(testing::file_text(mine), "mine");
  EXPECT_EQ(dir.files(), 2U);
}

TEST(ScheduleCommand, OutNeedsADirectory) {
  const TempDir dir;
  const Outcome run = longhaul_run({"schedule", dir.write("s.toml", kUniform), "--schedule", "1f1b",
                                    "--out", dir.path("none/x.csv")});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("there is no directory"));
}

}  // namespace
}  // namespace longhaul::test
