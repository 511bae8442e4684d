#include "cli/schedule/simulate_overlaps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

Outcome overlaps_of_toy(std::vector<std::string> more) {
  std::vector<std::string> words{"simulate",
                                 (testing::kShippedScenarios / "centauri-toy.toml").string(),
                                 "--schedule", "gpipe"};
  words.insert(words.end(), more.begin(), more.end());
  return longhaul_run(words);
}

TEST(SimulateOverlaps, HasARowForEach) {
  const Outcome run = overlaps_of_toy({"--overlap", "serial,zero3,ddp", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto rows = run.json()["schedules"];
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["overlap"], "serial");
  EXPECT_EQ(rows[0]["makespan_ns"], 17'000'000);
  EXPECT_EQ(rows[0]["exposed_ns"], rows[0]["communication_ns"]);
  EXPECT_EQ(rows[1]["makespan_ns"], 14'000'000);
  EXPECT_EQ(rows[1]["communication_ns"],
            (nlohmann::json{{"tp", 0}, {"fsdp", 5'000'000}, {"dp", 0}, {"pp", 0}}));
  EXPECT_EQ(rows[1]["exposed_ns"]["fsdp"], 2'000'000);
  EXPECT_EQ(rows[1]["lower_bound_ns"], 12'000'000);
  EXPECT_DOUBLE_EQ(rows[1]["alpha"], 5.0 / 17);
  EXPECT_DOUBLE_EQ(rows[1]["speedup_bound"], 17.0 / 12);
  EXPECT_DOUBLE_EQ(rows[1]["gap"], 1.0 / 6);
  EXPECT_EQ(rows[1]["grain"], "steps");
  EXPECT_EQ(rows[1]["gradient_sync"], "zero3");
  EXPECT_EQ(rows[2]["gradient_sync"], "all-reduce");
  EXPECT_EQ(rows[2]["shard"], 1);
}

TEST(SimulateOverlaps, WritesATraceThatIsValid) {
  const TempDir directory;
  const std::string file = directory.path("overlaps.h5");
  ASSERT_EQ(overlaps_of_toy({"--overlap", "serial,zero3", "--out", file}).code, 0);
  const Outcome checked = longhaul_run({"check", file});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

/// 16 ranks whose candidates do not fold: the whole search takes minutes.
TEST(SimulateOverlaps, EndASearchAtItsTimeLimitAndTraceWhatItFound) {
  const TempDir directory;
  const std::string file = directory.path("stopped.h5");
  const Outcome run = longhaul_run(
      {"simulate", (testing::kShippedScenarios / "centauri-real.toml").string(), "--schedule",
       "1f1b", "--overlap", "best", "--time-limit", "1s", "--json", "--out", file});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto row = run.json()["schedules"][0];
  EXPECT_TRUE(row["search_stopped"]);
  for (const auto& each : row["certificate"]["baselines"]) {
    EXPECT_LE(row["makespan_ns"], each["makespan_ns"]) << each["overlap"];
    EXPECT_EQ(each["grain"], "steps");
  }
  const Outcome traced = longhaul_run({"trace", "overlap", file});
  EXPECT_EQ(traced.code, 0) << traced.err;
}

TEST(SimulateOverlaps, RefusesInOneLine) {
  const auto said = [](std::vector<std::string> more) {
    const Outcome run = overlaps_of_toy(more);
    EXPECT_EQ(run.code, 2);
    return run.err;
  };
  EXPECT_THAT(said({"--overlap", "fsdp3"}), HasSubstr("Did you mean \"fsdp2\"?"));
  EXPECT_THAT(said({"--overlap", "zero3", "--set", "parallel.shard=3"}),
              HasSubstr("does not divide 2 replicas"));
  EXPECT_THAT(
      said({"--overlap", "zero3", "--set", "memory.capacity=1MB", "--set", "costs.activation=1MB"}),
      HasSubstr("Use at least"));
}

TEST(SimulateOverlaps, RefusesLimitsThatAnOverlapDoesNotTake) {
  const auto said = [](const char* overlap, const char* option, const char* value) {
    const Outcome run = overlaps_of_toy({"--overlap", overlap, option, value});
    EXPECT_EQ(run.code, 2) << run.out;
    return run.err;
  };
  EXPECT_THAT(said("zero3", "--allow", "layer"),
              HasSubstr("--allow and --overlap zero3 are both given (it is of centauri and best)"));
  EXPECT_THAT(said("centauri-rules", "--allow", "group"), HasSubstr("--overlap centauri-rules"));
  EXPECT_THAT(said("best", "--rules", "layer"),
              HasSubstr("--rules and --overlap best are both given (it is of centauri)"));
  EXPECT_THAT(said("centauri,best", "--rules", "layer"), HasSubstr("--overlap best"));
  EXPECT_EQ(overlaps_of_toy({"--overlap", "serial,centauri", "--allow", "layer"}).code, 0);
}

}  // namespace
}  // namespace longhaul::test
