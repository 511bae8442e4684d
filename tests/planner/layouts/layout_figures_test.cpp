#include "planner/layouts/layout_figures.hpp"

#include <gtest/gtest.h>

#include "planner/layouts/problems.hpp"
#include "profile/operator_times.hpp"
#include "scenario/presets.hpp"

namespace longhaul::planner {
namespace {

profile::TrainingRow preset(const std::string& name, int global_batch) {
  for (const scenario::ModelPreset& each : scenario::model_presets())
    if (each.model.name == name) return row_of_model(each.model, "selene", global_batch);
  ADD_FAILURE() << name;
  return {};
}

/// vTrain, table I, first row.
TEST(PaperUtilisation, IsThatOfTableOne) {
  const profile::TrainingRow model = preset("mt-nlg-530b", 1920);
  EXPECT_EQ(model.layers, 105);
  const Duration iteration{45'400'000'000};
  EXPECT_NEAR(paper_utilisation(model, iteration, 2240, 312e12), 0.4003, 5e-5);
  TrainingRun run;
  run.iterations = 68'000;
  TrainingCost cost = cost_of(run, iteration, 2240);
  EXPECT_NEAR(*cost.days, 35.73, 0.005);
  EXPECT_DOUBLE_EQ(cost.dollars_per_hour, 11'200);
  EXPECT_NEAR(*cost.dollars, 9.60e6, 0.005e6);
  // 270e9 tokens exactly
  run.iterations = iterations_of(270e9, model);
  EXPECT_EQ(*run.iterations, 68'665);
  cost = cost_of(run, iteration, 2240);
  EXPECT_NEAR(*cost.days, 36.08, 0.005);
  EXPECT_NEAR(*cost.dollars, 9.70e6, 0.005e6);
}

TEST(TrainingCost, IsNotKnownWithoutALength) {
  const TrainingCost cost = cost_of({}, Duration{1'000'000'000}, 8);
  EXPECT_FALSE(cost.days.has_value());
  EXPECT_FALSE(cost.dollars.has_value());
  EXPECT_DOUBLE_EQ(cost.dollars_per_hour, 40);
}

/// vTrain, equation 1 with alpha = 1: 1 GB over 64 ranks at 100 GB/s.
TEST(EquationOne, IsThatOfTheIssue) {
  profile::Machine machine = test::selene();
  machine.node_bytes_per_ns = 100;
  profile::ParameterValues values;
  values[profile::Parameter::alpha_data] = 1;
  EXPECT_NEAR(
      profile::all_reduce_ns(1e9, {64, false, 1}, profile::Parameter::alpha_data, machine, values),
      19'687'500, 1e-3);
}

/// Half of attention's square is what they differ in: s / 12h of a layer's 72 B s h^2.
TEST(OwnFlops, HalveAttention) {
  const profile::TrainingRow model = preset("175b", 1536);
  const double square = 72.0 * 1536 * 2048 * 96 * 12288.0 * 2048 / 12 * 1e-18;
  EXPECT_NEAR((paper_flops(model) - own_flops(model)) * 1e-18, square, square * 1e-9);
}

TEST(AddIntervals, HoldThePlan) {
  const LayoutProblem problem = test::layout_problem();
  LayoutSpace space;
  space.pipeline = {1, 2, 4};
  LayoutSearch search = search_layouts(problem, space);
  add_intervals(problem, search.plans);
  ASSERT_FALSE(search.plans.empty());
  for (const LayoutPlan& plan : search.plans) {
    EXPECT_LT(plan.low, plan.iteration);
    EXPECT_GT(plan.high, plan.iteration);
    EXPECT_LT(plan.high, plan.iteration * 3 / 2);
  }
}

}  // namespace
}  // namespace longhaul::planner
