// Schedules that are looked for: what is said of how they were found, and the options of that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(Planning, FlagsOfTheSolverTakeNoValue) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  for (const std::string flag : {"--solver-without-dp", "--solver-without-fusion"}) {
    const Outcome slip =
        longhaul_run({"schedule", scenario, "--schedule", "cross-ud-opt", flag + "=1"});
    EXPECT_EQ(slip.code, 2);
    EXPECT_THAT(slip.err, HasSubstr(flag + "=1: unexpected value"));
  }
}

TEST(Planning, CommandsTakeBestWhereTheyTakeASchedule) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  for (const std::string command : {"ops", "check"}) {
    const Outcome run =
        longhaul_run({command, scenario, "--schedule", "best", "--search-moves", "10"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("best"));
  }
}

TEST(Planning, ABudgetThatNothingFitsIsOneClearLine) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const Outcome run = longhaul_run(best_of(scenario, {"--set", "memory.budget=0.01"}));
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("memory.budget"));
}

TEST(Planning, MistypedValuesNameTheirOption) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const std::vector<std::vector<std::string>> slips{
      {"--search-time", "1", "--search-time: "},
      {"--search-time", "soon", "--search-time: "},
      {"--search-time", "-1s", "--search-time: "},
      {"--search-moves", "many", "--search-moves: \"many\" is no whole number"},
      {"--search-moves", "-1", "--search-moves: -1 is out of range"},
      {"--search-moves", "1e6", "--search-moves: "},
      {"--search-moves", "99999999999999999999", "--search-moves: "},
      {"--search-threads", "0", "--search-threads: 0 is out of range"},
      {"--search-seed", "x", "--search-seed: "},
      {"--placement", "wve", "Did you mean \"wave\"?"},
      {"--placement", "ud,,wave", "--placement: "},
      {"--time-limit", "1", "--time-limit: "},
      {"--time-limit", "10ms", "--time-limit: 10ms is less than a second"},
      {"--search-tme", "1s", "Did you mean \"--search-time\"?"}};
  for (const auto& slip : slips) {
    const Outcome run =
        longhaul_run({"schedule", scenario, "--schedule", "best", slip[0], slip[1]});
    EXPECT_EQ(run.code, 2) << slip[0] << ' ' << slip[1];
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(slip[2]));
  }
  const Outcome both = longhaul_run(
      {"schedule", scenario, "--schedule", "best", "--search-time", "1s", "--search-moves", "5"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("--search-time and --search-moves are both given"));
}

}  // namespace
}  // namespace longhaul::test
