#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/random_scenario.hpp"
#include "schedule/validity/validity.hpp"

/// Properties of every greedy generator over seeded random instances.
namespace longhaul {
namespace {

using test::random_scenario;
using ::testing::HasSubstr;

constexpr std::uint64_t kGreedyInstances = 400;

class Greedy : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Cross, Greedy,
                         ::testing::Values("cross-ud", "cross-ud-sub", "cross-wave", "cross-loop"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(Greedy, GivesValidSchedulesWithinTheBudget) {
  for (std::uint64_t seed = 0; seed < kGreedyInstances; ++seed) {
    const Scenario scenario = test::random_scenario(seed);
    const Schedule schedule = schedule::generate(GetParam(), scenario);
    const auto found = schedule::first_violation(schedule, scenario);
    ASSERT_FALSE(found) << "seed " << seed << ": " << found->text;
    ASSERT_TRUE(schedule::over_budget(schedule, scenario).empty()) << "seed " << seed;
  }
}

TEST_P(Greedy, GivesTheSameScheduleTwice) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Scenario scenario = test::random_scenario(seed);
    const Schedule schedule = schedule::generate(GetParam(), scenario);
    ASSERT_EQ(schedule, schedule::generate(GetParam(), scenario)) << "seed " << seed;
    ASSERT_EQ(schedule, schedule::read_csv(schedule::write_csv(schedule), "x.csv", "x"))
        << "seed " << seed;
  }
}

/// The number in an error after "Set memory.budget to"; 0 where there is no error.
double smallest_budget(const char* name, const Scenario& scenario) {
  try {
    (void)schedule::generate(name, scenario);
  } catch (const Error& error) {
    const std::string text = error.what();
    const std::string before = "Set memory.budget to ";
    EXPECT_THAT(text, HasSubstr(before));
    return std::stod(text.substr(text.find(before) + before.size()));
  }
  return 0;
}

// One microbatch alone holds all chunks of a device before its first D: whatever the
// placement, the largest stage's activation must fit, and then every schedule can end.
TEST_P(Greedy, RunsOnTheSmallestBudgetAndNamesIt) {
  for (std::uint64_t seed = 0; seed < kGreedyInstances; ++seed) {
    Scenario scenario = test::random_scenario(seed);
    const int held = std::min(scenario.parallel.stages, scenario.parallel.microbatches);
    scenario.memory.budget = 0.1 / held;
    const double smallest = smallest_budget(GetParam(), scenario);
    ASSERT_GT(smallest, 0) << "seed " << seed;
    ASSERT_LE(smallest, 1.0 / held + 1e-2) << "seed " << seed;
    if (!scenario.memory.recompute) {
      ASSERT_GE(smallest, 1.0 / held - 1e-2) << "seed " << seed;
    }
    scenario.memory.budget = smallest;
    const auto found =
        schedule::first_violation(schedule::generate(GetParam(), scenario), scenario);
    ASSERT_FALSE(found) << "seed " << seed << ": " << found->text;
  }
}

}  // namespace
}  // namespace longhaul
