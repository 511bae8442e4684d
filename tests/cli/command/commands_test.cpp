// Schedules that a command gets for --schedule, the words about the others, and the options of
// searches: the same in all commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

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

TEST(SearchOptions, FlagsOfTheSolverTakeNoValue) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  for (const std::string flag : {"--solver-without-dp", "--solver-without-fusion"}) {
    const Outcome slip =
        longhaul_run({"schedule", scenario, "--schedule", "cross-ud-opt", flag + "=1"});
    EXPECT_EQ(slip.code, 2);
    EXPECT_THAT(slip.err, HasSubstr(flag + "=1: unexpected value"));
  }
}

TEST(SearchOptions, CommandsTakeBestWhereTheyTakeASchedule) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  for (const std::string command : {"ops", "check"}) {
    const Outcome run =
        longhaul_run({command, scenario, "--schedule", "best", "--search-moves", "10"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("best"));
  }
}

TEST(SearchOptions, ABudgetThatNothingFitsIsOneClearLine) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const Outcome run = longhaul_run({"schedule", scenario, "--schedule", "best", "--search-moves",
                                    "300", "--search-threads", "1", "--set", "memory.budget=0.01"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("memory.budget"));
}

TEST(SearchOptions, MistypedValuesNameTheirOption) {
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
      {"--overlap-search", "many", "--overlap-search: \"many\" is no whole number"},
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
