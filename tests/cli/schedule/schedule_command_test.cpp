#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

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

// Schedules that are looked for: the account of how they were found.

std::vector<std::string> best_of(const std::string& scenario, std::vector<std::string> more) {
  std::vector<std::string> words{"schedule",       scenario, "--schedule",       "best",
                                 "--search-moves", "300",    "--search-threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Planning, BestSaysWhatItChoseFrom) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const Outcome run = longhaul_run(best_of(scenario, {"--json"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto record = run.json()["schedules"][0];
  EXPECT_EQ(record["schedule"], "best");
  const auto& planning = record["planning"];
  EXPECT_EQ(planning["makespan_ns"], record["makespan_ns"]);
  std::vector<std::string> fitting;
  for (const auto& candidate : planning["candidates"]) {
    fitting.push_back(candidate["schedule"]);
    EXPECT_LE(planning["makespan_ns"], candidate["makespan_ns"]) << candidate;
  }
  EXPECT_THAT(fitting, Contains("zb-h1"));
  EXPECT_THAT(fitting, Contains(planning["started_from"].get<std::string>()));
  std::vector<std::string> rejected;
  for (const auto& candidate : planning["rejected"]) {
    rejected.push_back(candidate["schedule"]);
    EXPECT_NE(candidate["reason"], "");
  }
  EXPECT_THAT(rejected, Contains("gpipe")) << "it needs 8 activations, the budget is 4";
}

TEST(Planning, PeopleReadIt) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const Outcome made = longhaul_run(best_of(scenario, {}));
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("How it was found:"), HasSubstr("best: from "),
                              HasSubstr("candidate"), HasSubstr("not gpipe: ")));
  const Outcome simulated =
      longhaul_run({"simulate", scenario, "--schedule", "1f1b,best", "--search-moves", "10"});
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_THAT(simulated.out, HasSubstr("\nbest: from "));
  EXPECT_THAT(simulated.out, Not(HasSubstr("not gpipe"))) << "a short note is enough here";
}

TEST(Planning, MovesMakeTheResultRepeatable) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const auto arguments = best_of(scenario, {"--json", "--search-seed", "7"});
  EXPECT_EQ(longhaul_run(arguments).out, longhaul_run(arguments).out);
}

TEST(Planning, TheFileOfBestIsAScheduleLikeAnyOther) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const std::string csv = dir.path("best.csv");
  const Outcome made = longhaul_run(best_of(scenario, {"--json", "--out", csv}));
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(longhaul_run({"check", csv, "--scenario", scenario}).code, 0);
  const Outcome read = longhaul_run({"simulate", scenario, "--schedule", csv, "--json"});
  ASSERT_EQ(read.code, 0) << read.err;
  EXPECT_EQ(read.json()["schedules"][0]["makespan_ns"], made.json()["schedules"][0]["makespan_ns"]);
  EXPECT_FALSE(read.json()["schedules"][0].contains("planning"));

  const Outcome other =
      longhaul_run({"simulate", scenario, "--schedule", csv, "--set", "parallel.microbatches=6"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("best.csv: "), HasSubstr("6")));
  const Outcome smaller =
      longhaul_run({"simulate", dir.write("two.toml", kTwoStages), "--schedule", csv});
  EXPECT_EQ(smaller.code, 1);
  EXPECT_THAT(smaller.err, AllOf(HasSubstr("best.csv: "), HasSubstr("4 devices")));
}

TEST(Planning, PlacementRestrictsBest) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const auto chosen = [&](const std::string& placement) {
    const Outcome run = longhaul_run(best_of(scenario, {"--json", "--placement", placement}));
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json()["schedules"][0]["planning"];
  };
  const auto wave = chosen("wave");
  for (const auto& candidate : wave["candidates"])
    EXPECT_THAT(candidate["schedule"].get<std::string>(),
                ::testing::AnyOf("zbv", "zbv-auto", HasSubstr("wave")));
  EXPECT_GT(chosen("ud,wave")["candidates"].size(), wave["candidates"].size());
}

TEST(Planning, RobustPicksByTheTailUnderJitter) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const Outcome without = longhaul_run(best_of(scenario, {"--robust"}));
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("has jitter"));
  const Outcome run =
      longhaul_run(best_of(scenario, {"--robust", "--set", "link.jitter=0.3", "--json"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto candidates = run.json()["schedules"][0]["planning"]["under_jitter"];
  ASSERT_GT(candidates.size(), 1U);
  for (const auto& candidate : candidates)
    EXPECT_LE(candidates[0]["p95_ns"], candidate["p95_ns"]) << candidate;
  EXPECT_EQ(candidates[0]["makespan_ns"], run.json()["schedules"][0]["makespan_ns"]);
  const Outcome text = longhaul_run(best_of(scenario, {"--robust", "--set", "link.jitter=0.3"}));
  EXPECT_THAT(text.out, AllOf(HasSubstr("under jitter it is"), HasSubstr("p95 [")));
}

TEST(Planning, TheSolverShowsItsProof) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoStages);
  const std::vector<std::string> words{"simulate",       scenario, "--schedule",   "cross-ud-opt",
                                       "--search-moves", "0",      "--time-limit", "20s"};
  const Outcome text = longhaul_run(words);
  if (text.code != 0 && text.err.find("ortools") != std::string::npos) {
    EXPECT_THAT(text.err, HasSubstr("install")) << "it says how to get it";
    GTEST_SKIP() << text.err;
  }
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("cross-ud-opt: the solver ended after "));
  std::vector<std::string> with_json = words;
  with_json.push_back("--json");
  const auto record = longhaul_run(with_json).json()["schedules"][0];
  const auto& solver = record["planning"]["solver"];
  EXPECT_EQ(solver["status"], "optimal") << "two stages, two microbatches";
  EXPECT_EQ(solver["makespan_ns"], record["makespan_ns"]);
  EXPECT_EQ(solver["lower_bound_ns"], record["makespan_ns"]);
  EXPECT_EQ(record["gap"], 0.0);
}

TEST(ScheduleCommand, ExportsOperatorsOfPlansAndRefusesThemInFilesOfBlocks) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kOperators);
  const auto run = [&](const std::string& format, const std::string& granularity) {
    return longhaul_run({"schedule", scenario, "--schedule", "1f1b", "--format", format, "--out",
                         dir.path(granularity + "." + format), "--granularity", granularity});
  };
  ASSERT_EQ(run("goal", "block").code, 0);
  const Outcome goal = run("goal", "operator");
  ASSERT_EQ(goal.code, 0) << goal.err;
  const auto computations = [&](const std::string& file) {
    const std::string text = file_text(dir.path(file));
    int count = 0;
    for (std::size_t at = text.find("calc "); at != std::string::npos;
         at = text.find("calc ", at + 1))
      ++count;
    return count;
  };
  EXPECT_GT(computations("operator.goal"), computations("block.goal"));
  for (const char* format : {"longhaul", "pytorch"})
    for (const std::string granularity : {"operator", "task"}) {
      const Outcome refused = run(format, granularity);
      EXPECT_EQ(refused.code, 2);
      EXPECT_THAT(refused.err, HasSubstr("--granularity " + granularity + ": "));
      EXPECT_THAT(refused.err, HasSubstr("orders blocks (a schedule does)"));
    }
}

}  // namespace
}  // namespace longhaul::test
