#include "collective/iteration/weight_units.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/iteration/iteration_of.hpp"
#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

Scenario llama_of(std::vector<std::string> set) {
  return scenario::load_scenario(testing::kShippedScenarios / "centauri-fsdp.toml", set);
}

std::vector<WeightUnit> units(const Scenario& scenario, const char* schedule = "gpipe") {
  const IterationPlan plan =
      iteration_of(schedule::generate(schedule, scenario), scenario).or_throw();
  std::vector<WeightUnit> all;
  for (const StageWork& work : plan.stages)
    all.insert(all.end(), work.units.begin(), work.units.end());
  return all;
}

Bytes sum(const std::vector<WeightUnit>& units) {
  Bytes all;
  for (const WeightUnit& unit : units) all += unit.weights;
  return all;
}

TEST(WeightUnits, AreOperatorsWithTheNormalizationsBeforeThem) {
  const std::vector<WeightUnit> all = units(llama_of({}));
  ASSERT_EQ(all.size(), 4U * 18);
  constexpr std::int64_t d = 4096;
  EXPECT_NEAR(static_cast<double>(all[0].weights.count()), 2.0 * (3 * d * d + d), 2.0 * d);
  EXPECT_NEAR(static_cast<double>(all[1].weights.count()), 2.0 * d * d, 2.0 * d);
  EXPECT_NEAR(static_cast<double>(all[2].weights.count()), 4.0 * d * 11008, 4.0 * d);
}

TEST(WeightUnits, AreLayersAndAddUp) {
  for (const char* unit : {"operator", "layer", "3", "100"}) {
    const Scenario scenario = llama_of({std::string{"parallel.unit="} + unit});
    EXPECT_EQ(sum(units(scenario)), scenario.costs.weights.front()) << unit;
  }
  EXPECT_EQ(units(llama_of({"parallel.unit=layer"})).size(), 18U);
  EXPECT_EQ(units(llama_of({"parallel.unit=4"})).size(), 5U);
  EXPECT_EQ(units(testing::centauri_toy({"parallel.unit=layer"})).size(), 2U);
}

TEST(WeightUnits, DoNotSpanChunks) {
  const Scenario scenario = llama_of(
      {"parallel.stages=2", "parallel.microbatches=4", "parallel.unit=100", "datacenter.gpus=32"});
  EXPECT_EQ(units(scenario, "interleaved-1f1b").size(), 4U);
}

TEST(WeightUnits, GradientsHaveTheirOwnSize) {
  for (const WeightUnit& unit : units(llama_of({"parallel.gradient_bytes=4"})))
    EXPECT_EQ(unit.gradients, unit.weights * 2);
}

}  // namespace
}  // namespace longhaul::collective
