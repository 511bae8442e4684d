// `simulate --robust`: every schedule that was named, in the iterations that `best` is picked by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kJitter{"--robust", "--set", "link.jitter=0.3"};

Outcome simulate(const std::string& scenario, const std::string& schedules,
                 std::vector<std::string> more) {
  std::vector<std::string> words{"simulate",       scenario, "--schedule",       schedules,
                                 "--search-moves", "100",    "--search-threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return longhaul_run(words);
}

TEST(UnderJitter, HasALineForEachSchedule) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const Outcome text = simulate(scenario, "1f1b,zb-h1", kJitter);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("In 256 iterations under jitter (run.seed = 1):"));
  auto words = kJitter;
  words.emplace_back("--json");
  const Outcome run = simulate(scenario, "1f1b,zb-h1,best", words);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto rows = run.json()["under_jitter"];
  ASSERT_EQ(rows.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i]["origin"], run.json()["schedules"][i]["schedule"]);
    EXPECT_EQ(rows[i]["makespan_ns"], run.json()["schedules"][i]["makespan_ns"]);
    EXPECT_GE(rows[i]["p95_ns"], rows[i]["median_ns"]);
    EXPECT_LE(rows[2]["p95_ns"], rows[i]["p95_ns"]);
  }
}

TEST(UnderJitter, FollowsTheSeedAlone) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const auto p95 = [&](const std::string& seed) {
    const Outcome run = simulate(
        scenario, "1f1b",
        {"--robust", "--json", "--set", "link.jitter.latency=0.3", "--set", "run.seed=" + seed});
    return run.json()["under_jitter"][0]["p95_ns"].get<int>();
  };
  EXPECT_EQ(p95("1"), p95("1"));
  EXPECT_NE(p95("1"), p95("2"));
}

TEST(UnderJitter, IsOnlyThereWhenAskedForAndNeedsJitter) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  EXPECT_THAT(simulate(scenario, "1f1b", {"--set", "link.jitter=0.3"}).out,
              Not(HasSubstr("under jitter")));
  const Outcome without = simulate(scenario, "1f1b", {"--robust"});
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("--set link.jitter=0.2"));
}

}  // namespace
}  // namespace longhaul::test
