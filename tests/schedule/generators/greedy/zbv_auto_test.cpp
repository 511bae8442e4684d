#include <algorithm>
#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "schedule/evaluator.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/scenarios.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::schedule {
namespace {

Duration makespan(const std::string& name, const Scenario& scenario) {
  const auto result = test::evaluate(generate(name, scenario), scenario);
  EXPECT_TRUE(result) << name << ": deadlock";
  return result ? result->makespan : Duration::zero();
}

/// P stages whose chunks take these times in F, D and W, no delays; memory of P activations.
Scenario wave_scenario(int stages, int microbatches, const std::array<int, 3>& costs) {
  Scenario scenario = uniform_scenario(stages, microbatches);
  for (std::size_t i = 0; i < at(stages); ++i) {
    scenario.costs.forward[i] = Duration{2 * costs[0]};  // of both chunks
    scenario.costs.dgrad[i] = Duration{2 * costs[1]};
    scenario.costs.wgrad[i] = Duration{2 * costs[2]};
    scenario.costs.backward[i] = scenario.costs.dgrad[i] + scenario.costs.wgrad[i];
  }
  return scenario;
}

/// Messages take no time. P 1..8, M 1..24; costs of one stage like those of another or not.
Scenario random_wave(std::uint64_t seed) {
  Random random{seed};
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return static_cast<int>(random.between(low, high));
  };
  Scenario scenario = uniform_scenario(draw(1, 8), draw(1, 24));
  const bool uneven = draw(0, 1) == 0;
  Costs& costs = scenario.costs;
  for (auto* times : {&costs.forward, &costs.dgrad, &costs.wgrad, &costs.recompute}) {
    const int common = draw(1, 250);
    for (Duration& time : *times) time = Duration{2 * (uneven ? draw(1, 250) : common)};
  }
  for (Bytes& activation : costs.activation) activation = Bytes{uneven ? draw(4, 40) : 8};
  for (std::size_t i = 0; i < costs.forward.size(); ++i)
    costs.backward[i] = costs.dgrad[i] + costs.wgrad[i];
  scenario.memory.recompute = draw(0, 3) == 0;
  scenario.memory.budget = draw(4, 16) / 8.0;
  return scenario;
}

constexpr std::uint64_t kInstances = 600;

TEST(ZbvAuto, IsValidWithinTheBudgetAndRepeatable) {
  int made = 0;
  for (std::uint64_t seed = 0; seed < kInstances; ++seed) {
    const Scenario scenario = random_wave(seed);
    const Result<Schedule> schedule = try_generate(*find_generator("zbv-auto"), scenario);
    if (!schedule) continue;
    ++made;
    const auto found = first_violation(*schedule, scenario);
    ASSERT_FALSE(found) << "seed " << seed << ": " << found->text;
    ASSERT_TRUE(test::evaluate(*schedule, scenario)) << "seed " << seed << ": deadlock";
    ASSERT_EQ(*schedule, generate("zbv-auto", scenario)) << "seed " << seed;
  }
  EXPECT_GT(made, 9 * kInstances / 10);
}

// Judged by the evaluator of the tests, which knows nothing of the generator's own times.
TEST(ZbvAuto, IsNeverLongerThanZbvWhereThatFits) {
  int compared = 0;
  int shorter = 0;
  for (std::uint64_t seed = 0; seed < kInstances; ++seed) {
    const Scenario scenario = random_wave(seed);
    if (!over_budget(generate("zbv", scenario), scenario).empty()) continue;
    const Duration closed = makespan("zbv", scenario);
    const Duration ours = makespan("zbv-auto", scenario);
    ASSERT_LE(ours, closed) << "seed " << seed;
    ++compared;
    shorter += ours < closed ? 1 : 0;
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(shorter, compared / 4);
}

/// Needs memory for one microbatch, as every wave does, and no more.
TEST(ZbvAuto, RunsInTheMemoryOfOneMicrobatch) {
  for (const int stages : {1, 2, 5}) {
    for (const int microbatches : {1, 2, 7}) {
      Scenario scenario = uniform_scenario(stages, microbatches);
      const int most = std::min(stages, microbatches);  // a budget of 1 holds as many
      scenario.memory.budget = 1.0 / most;
      const Schedule schedule = generate("zbv-auto", scenario);
      const auto found = first_violation(schedule, scenario);
      EXPECT_FALSE(found) << found->text;
      scenario.memory.budget = 0.9 / most;
      EXPECT_THAT(try_generate(*find_generator("zbv-auto"), scenario).refusal().reason,
                  ::testing::HasSubstr("Set memory.budget to"));
    }
  }
}

struct Setting {
  int stages, microbatches;
  std::array<int, 3> costs;  ///< F, D, W of a chunk
  int closed, authors;       ///< makespans of the closed form and of the authors' program
};

// Costs that differ, or M near P: there the closed form is longer than what its authors' program
// (sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv.py) gives.
TEST(ZbvAuto, IsAsGoodAsItsAuthorsProgram) {
  for (const Setting& setting :
       {Setting{8, 8, {100, 100, 100}, 6200, 5500}, Setting{8, 10, {100, 130, 70}, 7540, 6980},
        Setting{4, 5, {50, 100, 150}, 3400, 3300}, Setting{6, 12, {200, 60, 50}, 9090, 8890}}) {
    const Scenario scenario = wave_scenario(setting.stages, setting.microbatches, setting.costs);
    EXPECT_EQ(makespan("zbv", scenario), Duration{setting.closed});
    EXPECT_LE(makespan("zbv-auto", scenario), Duration{setting.authors});
  }
}

// The closed form is optimal there on device span, and stays.
TEST(ZbvAuto, IsZbvWhereBlocksAreEquallyLong) {
  for (const auto& [stages, microbatches] : {std::pair{4, 8}, {8, 16}, {8, 32}}) {
    const Scenario scenario = uniform_scenario(stages, microbatches);
    EXPECT_EQ(generate("zbv-auto", scenario).rows, generate("zbv", scenario).rows);
  }
}

// Links decide nothing: the schedule is the same under every latency.
TEST(ZbvAuto, IsTheSameUnderEveryDelay) {
  Scenario scenario = test::two_datacenters(4, 9, Duration{400});
  std::ranges::fill(scenario.costs.wgrad, Duration{60});
  Scenario near = test::two_datacenters(4, 9, Duration{0});
  near.costs = scenario.costs;
  EXPECT_EQ(generate("zbv-auto", scenario).rows, generate("zbv-auto", near).rows);
}

}  // namespace
}  // namespace longhaul::schedule
