#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

TEST(CheckCommand, ShowsPlacementLinksAndMemoryOfAScenario) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const Outcome run = longhaul_run({"check", scenario});
  EXPECT_EQ(run.code, 0) << run.err;
  for (const char* text : {"two-sites", "4 stages", "west", "0-1", "2-3", "100 ns", "1f1b"})
    EXPECT_THAT(run.out, HasSubstr(text));

  const auto answer = longhaul_run({"check", scenario, "--json"}).json();
  ASSERT_EQ(answer["files"].size(), 1U);
  const auto& file = answer["files"][0];
  EXPECT_EQ(file["kind"], "scenario");
  EXPECT_EQ(file["ok"], true);
  EXPECT_EQ(file["placement"], nlohmann::json({"west", "west", "east", "east"}));
  EXPECT_EQ(file["links"].size(), 2U);
  EXPECT_EQ(file["links"][0]["latency_ns"], 100);
  ASSERT_EQ(file["memory"].size(), 4U);
  EXPECT_EQ(file["memory"][0]["activations_bytes"], 4 * 2 * 1024 * 1024);
  EXPECT_TRUE(file["memory"][0]["capacity_bytes"].is_null());
}

TEST(CheckCommand, ShowsLayersAndTimesOfEachStage) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", R"([model]
preset = "m70-measured"
layers_per_stage = [20, 44]
[parallel]
stages = 2
microbatches = 2
[[datacenter]]
name = "west"
speed = 2
)");
  EXPECT_THAT(longhaul_run({"check", scenario}).out, HasSubstr("\n    1  west      2      44"));
  const auto stages = longhaul_run({"check", scenario, "--json"}).json()["files"][0]["stages"];
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0]["layers"], 20);
  EXPECT_EQ(stages[0]["speed"], 2.0);
  EXPECT_EQ(stages[0]["forward_ns"], 47'500'000);  // 20 / 8 * 38 ms / 2
  EXPECT_EQ(stages[1]["wgrad_ns"], 96'250'000);
  const auto given = longhaul_run({"check", dir.write("t.toml", kTwoStages), "--json"}).json();
  EXPECT_TRUE(given["files"][0]["stages"][0]["layers"].is_null());
}

TEST(CheckCommand, AScenarioThatDoesNotFitIsAnsweredWithDevicesAndAmounts) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform + "[memory]\ncapacity = \"80MiB\"\n");
  // Weights 8, gradients 8, optimizer 48, buffers; 4 activations of 2 MiB under 1F1B, 8 under
  // GPipe.
  EXPECT_EQ(longhaul_run({"check", scenario}).code, 0);
  const Outcome run = longhaul_run({"check", scenario, "--schedule", "gpipe"});
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("device 1 does not fit"));
  EXPECT_THAT(run.out, HasSubstr("NO"));
  const auto answer = longhaul_run({"check", scenario, "--schedule", "gpipe", "--json"}).json();
  EXPECT_EQ(answer["files"][0]["ok"], false);
  EXPECT_FALSE(answer["files"][0]["problems"].empty());
}

TEST(CheckCommand, ExplainsTheFirstViolationOfASchedule) {
  const TempDir dir;
  const std::string csv = dir.write("bad.csv", "0F0,0B0\n1B0,1F0\n");
  const Outcome run = longhaul_run({"check", csv});
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("not valid"));
  EXPECT_THAT(run.out, HasSubstr("device 1"));
  const auto answer = longhaul_run({"check", csv, "--json"}).json();
  EXPECT_EQ(answer["files"][0]["ok"], false);
  EXPECT_EQ(answer["files"][0]["problems"].size(), 1U);
}

TEST(CheckCommand, HoldsAScheduleAgainstAScenario) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::string csv = dir.path("zb-h2.csv");
  ASSERT_EQ(longhaul_run({"schedule", scenario, "--schedule", "zb-h2", "--out", csv}).code, 0);
  EXPECT_EQ(longhaul_run({"check", csv}).code, 0);
  const Outcome over = longhaul_run({"check", csv, "--scenario", scenario});
  EXPECT_EQ(over.code, 1);
  EXPECT_THAT(over.out, HasSubstr("budget"));
  EXPECT_EQ(longhaul_run({"check", csv, "--scenario", scenario, "--set", "memory.budget=2"}).code,
            0);
  const Outcome shape =
      longhaul_run({"check", csv, "--scenario", scenario, "--set", "parallel.microbatches=16"});
  EXPECT_EQ(shape.code, 1);
  EXPECT_THAT(shape.out, HasSubstr("16"));
}

TEST(CheckCommand, JudgesLinkOrdersByADryRun) {
  const TempDir dir;
  const std::string scenario = dir.write("two.toml", kTwoStages);
  const auto check = [&](const std::string& orders) {
    const std::string csv = dir.write("orders.csv", ordered_schedule(orders));
    EXPECT_EQ(longhaul_run({"check", csv}).code, 0) << "right by itself";
    return longhaul_run({"check", csv, "--scenario", scenario});
  };
  const std::string right = "# link_order \"link 0>1\" = 0:0F0,0:0F1\n";
  EXPECT_EQ(check(right).code, 0);
  const std::vector<std::pair<std::string, std::string>> wrong{
      {right + "# link_order \"link 0>7\" = 0:0F1\n", "\"link 0>7\", which no message takes"},
      {"# link_order \"link 0>1\" = 0:0F0,0:0F1,0:1F1\n", "no such message takes it"},
      {"# link_order \"link 0>1\" = 0:0F0\n", "leaves 1 of 2 messages out"},
      {"# link_order \"link 0>1\" = 0:0F1,0:0F0\n",
       "Change the order of these blocks, or the stated order of \"link 0>1\"."}};
  for (const auto& [orders, answer] : wrong) {
    const Outcome run = check(orders);
    EXPECT_EQ(run.code, 1) << answer;
    EXPECT_EQ(run.err, "");
    EXPECT_THAT(run.out, HasSubstr("not valid on two"));
    EXPECT_THAT(run.out, HasSubstr(answer));
  }
}

TEST(CheckCommand, SetNeedsAScenarioToOverride) {
  const TempDir dir;
  const std::string csv = dir.write("x.csv", "0F0,0B0\n");
  const std::string scenario = dir.write("s.toml", kUniform);
  const Outcome run = longhaul_run({"check", "--set", "x.y=1", csv});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err,
            "longhaul: --set x.y=1: there is no scenario to override. Name one with --scenario.\n");
  EXPECT_EQ(longhaul_run({"check", "--set", "run.seed=2", csv, scenario}).code, 0);
}

TEST(CheckCommand, LooksAtSeveralFilesAndSaysNoIfOneIsWrong) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::string bad = dir.write("bad.csv", "0F0\n");
  const Outcome run = longhaul_run({"check", scenario, bad, "--json"});
  EXPECT_EQ(run.code, 1);
  const auto files = run.json()["files"];
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0]["ok"], true);
  EXPECT_EQ(files[1]["ok"], false);
}

TEST(CheckCommand, BadInputIsRefused) {
  const TempDir dir;
  const std::vector<std::pair<std::string, std::string>> slips{
      {dir.path("none.toml"), "no such file"},
      {dir.write("note.txt", "x"), "no kind of file"},
      {dir.path(""), "is no run"},
      {dir.write("bad.toml", "[scenario]\nnaem = 'x'\n"), "bad.toml:2:"},
      {dir.write("garbage.csv", "0F0,what\n"), "garbage.csv:1:"}};
  for (const auto& [file, answer] : slips) {
    const Outcome run = longhaul_run({"check", file});
    EXPECT_EQ(run.code, 2) << file;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(answer));
  }
}

TEST(CheckCommand, SaysWhatIsWrongWithATrace) {
  const TempDir dir;
  const Outcome run = longhaul_run({"check", dir.write("broken.h5", "no HDF5 at all")});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.out, HasSubstr("not a valid trace"));
}

TEST(CheckCommand, ReportsOnEachOfSeveralFiles) {
  const TempDir dir;
  const std::string good = dir.write("s.toml", kTwoSites);
  const std::string broken = dir.write("b.toml", "[parallel]\nstages = \n");
  const std::string missing = dir.path("none.toml");
  const Outcome run = longhaul_run({"check", broken, missing, good});
  EXPECT_EQ(run.code, 2) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr(broken + ": cannot be checked"));
  EXPECT_THAT(run.out, HasSubstr("b.toml:2:"));
  EXPECT_THAT(run.out, HasSubstr(missing + ": cannot be read (there is no such file)"));
  EXPECT_THAT(run.out, HasSubstr("two-sites"));
  const auto files = longhaul_run({"check", broken, missing, good, "--json"}).json()["files"];
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0]["ok"], false);
  EXPECT_EQ(files[1]["ok"], false);
  EXPECT_EQ(files[2]["ok"], true);
  const Outcome alone = longhaul_run({"check", missing});
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(alone.out, "") << "an error as of any command";
}

}  // namespace
}  // namespace longhaul::test
