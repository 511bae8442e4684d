#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kFastWest = R"([model]
preset = "m70-measured"
layers = 16
[parallel]
stages = 4
microbatches = 6
[[datacenter]]
name = "west"
stages = "0-1"
speed = 2
[[datacenter]]
name = "east"
stages = "2-3"
[[link]]
between = "all"
latency = "10ms"
)";

Outcome layers(const std::string& scenario, std::vector<std::string> more) {
  std::vector<std::string> words{"layers", scenario,           "--search-moves",
                                 "50",     "--search-threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return longhaul_run(words);
}

TEST(LayersCommand, RefinedIsNoWorseThanBalanced) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kFastWest);
  const Outcome run = layers(scenario, {"--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto divisions = run.json()["divisions"];
  ASSERT_EQ(divisions.size(), 3U);
  EXPECT_EQ(divisions[0]["layers"], nlohmann::json({4, 4, 4, 4}));
  EXPECT_EQ(divisions[0]["slowest_stage_ns"], 54'000'000);  // 4 / 8 * (38 + 35 + 35) ms
  EXPECT_EQ(divisions[1]["layers"], nlohmann::json({6, 6, 2, 2}));
  EXPECT_LE(divisions[2]["makespan_ns"], divisions[1]["makespan_ns"]);
  for (const auto& division : divisions) {
    const auto of_stage = division["layers"].get<std::vector<int>>();
    EXPECT_EQ(std::accumulate(of_stage.begin(), of_stage.end(), 0), 16);
  }
  EXPECT_EQ(divisions[0]["budget"], 1.0);
  EXPECT_DOUBLE_EQ(divisions[1]["budget"].get<double>(), 4.0 / 6);
  const Outcome text = layers(scenario, {});
  EXPECT_THAT(text.out, AllOf(HasSubstr("even      [4,4,4,4]"), HasSubstr("refined ")));
}

TEST(LayersCommand, NeedsAModel) {
  const TempDir dir;
  const Outcome run = layers(dir.write("s.toml", kTwoSites), {});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("has no [model]"));
}

}  // namespace
}  // namespace longhaul::test
