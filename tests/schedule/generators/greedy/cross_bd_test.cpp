#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/evaluator.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/random_scenario.hpp"
#include "schedule/scenarios.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::schedule {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kCrossInstances = 400;

TEST(CrossBd, GivesValidSchedulesWithinTheBudget) {
  for (std::uint64_t seed = 0; seed < kCrossInstances; ++seed) {
    const Scenario scenario = test::random_scenario(seed);
    const Schedule schedule = generate("cross-bd", scenario);
    const auto found = first_violation(schedule, scenario);
    ASSERT_FALSE(found) << "seed " << seed << ": " << found->text;
    ASSERT_TRUE(over_budget(schedule, scenario).empty()) << "seed " << seed;
    ASSERT_TRUE(test::evaluate(schedule, scenario)) << "seed " << seed;
    ASSERT_EQ(schedule, generate("cross-bd", scenario)) << "seed " << seed;
    ASSERT_EQ(schedule, read_csv(write_csv(schedule), "x.csv", "x")) << "seed " << seed;
  }
}

TEST(CrossBd, OddAndSmallCountsWork) {
  for (int stages = 1; stages <= 7; ++stages) {
    for (int microbatches = 1; microbatches <= 9; ++microbatches) {
      SCOPED_TRACE(fmt::format("P {}, M {}", stages, microbatches));
      const Scenario scenario = uniform_scenario(stages, microbatches);
      const Schedule schedule = generate("cross-bd", scenario);
      const auto found = first_violation(schedule, scenario);
      ASSERT_FALSE(found) << found->text;
      // F = D = W = 100: no schedule is shorter than one microbatch or the work of a device.
      const auto result = test::evaluate(schedule, scenario);
      ASSERT_TRUE(result);
      EXPECT_GE(result->makespan, Duration{300 * microbatches});
      EXPECT_GE(result->makespan, Duration{200 * stages + 100});
    }
  }
}

// Chimera: with both ends fed at once the pipeline fills in half the time. P = 4, M = 8, all 100:
// the ideal is 2400, GPipe and 1F1B take 3300, ZB-H1 2700.
TEST(CrossBd, FillsThePipelineFromBothEnds) {
  const Scenario scenario = uniform_scenario(4, 8);
  const auto result = test::evaluate(generate("cross-bd", scenario), scenario);
  ASSERT_TRUE(result);
  EXPECT_LE(result->makespan, Duration{2700});
}

TEST(CrossBd, BothCopiesTakeTheSameTime) {
  // Everything is symmetric, so the rows of devices k and P-1-k are mirror images in time.
  const Scenario scenario = test::two_datacenters(4, 8, Duration{200});
  const Schedule schedule = generate("cross-bd", scenario);
  for (std::size_t device = 0; device < 2; ++device) {
    const std::vector<Block>& row = schedule.rows[device];
    const std::vector<Block>& mirror = schedule.rows[3 - device];
    ASSERT_EQ(row.size(), mirror.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      Block other = mirror[i];
      other.chunk = ChunkId{(other.chunk + 4) % 8};
      other.microbatch = MicrobatchId{other.microbatch ^ 1};
      EXPECT_EQ(row[i], other) << "device " << device << ", position " << i;
    }
  }
}

TEST(CrossBd, NamesTheSmallestBudget) {
  for (std::uint64_t seed = 0; seed < kCrossInstances; ++seed) {
    Scenario scenario = test::random_scenario(seed);
    scenario.memory.budget = 0.01;
    try {
      (void)generate("cross-bd", scenario);
      FAIL() << "seed " << seed;
    } catch (const Error& error) {
      const std::string text = error.what();
      const std::string before = "Set memory.budget to ";
      ASSERT_THAT(text, HasSubstr(before)) << "seed " << seed;
      scenario.memory.budget = std::stod(text.substr(text.find(before) + before.size()));
    }
    const auto found = first_violation(generate("cross-bd", scenario), scenario);
    ASSERT_FALSE(found) << "seed " << seed << ": " << found->text;
  }
}

}  // namespace
}  // namespace longhaul::schedule
