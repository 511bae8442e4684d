#include "planner/layouts/model_size.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "planner/layouts/problems.hpp"

namespace longhaul::planner {
namespace {

/// vTrain, table III: 10^9 weights and 10^9 tokens, 20 times these, as printed.
TEST(PaperParameters, AreTheColumnsOfTableThree) {
  constexpr std::array kWeights{145.61, 127.49, 109.37, 101.21, 88.62, 76.04,
                                82.03,  71.83,  61.64,  56.81,  48.75};
  constexpr std::array kTokens{2912, 2550, 2187, 2024, 1772, 1521, 1641, 1437, 1233, 1136, 975};
  const std::vector<ModelShape> shapes = table_three_shapes();
  ASSERT_EQ(shapes.size(), kWeights.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const double weights = paper_parameters(shapes[i].hidden, shapes[i].layers, 50'000, 2048);
    EXPECT_NEAR(std::round(weights / 1e7) / 100, kWeights[i], 1e-9) << i;
    EXPECT_EQ(std::lround(kTokensPerParameter * weights / 1e9), kTokens[i]) << i;
  }
}

TEST(PrintedEquations, GiveWhatTheIssueSays) {
  const ComputeBudget budget{3360, 30, 312e12};
  EXPECT_NEAR(budget.flops(), 2.717e24, 0.0005e24);
  const NaivePoint naive = printed_equations(budget.flops());
  EXPECT_NEAR(naive.parameters, 146.7e9, 0.05e9);
  EXPECT_NEAR(naive.tokens, 3091e9, 0.5e9);
}

/// Hoffmann et al., section D.3: Gopher's and Chinchilla's point.
TEST(HoffmannLoss, FallsWithWeightsAndTokens) {
  EXPECT_NEAR(hoffmann_loss(70e9, 1.4e12), 1.9366, 1e-3);
  EXPECT_LT(hoffmann_loss(70e9, 1.4e12), hoffmann_loss(280e9, 300e9));
}

TEST(LeastLossWithin, IsThatOfNeitherEnd) {
  std::vector<SizedModel> models(4);
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].plan.emplace();
    models[i].loss_in_budget = std::array{2.5, 2.25, 2.0, 2.75}[i];
  }
  models[2].plan.reset();  // it has no loss
  EXPECT_EQ(least_loss_within(models), 1);
  EXPECT_EQ(least_loss_within({}), -1);
}

TEST(SizeModels, TakesTheLargestInTime) {
  LayoutProblem problem = test::layout_problem(64);
  const ComputeBudget budget{16, 2, 312e12};
  const auto space_of = [](const LayoutProblem&) {
    LayoutSpace space;
    space.tensor = {1, 2, 4, 8};
    space.data = {1, 2, 4, 8, 16};
    space.pipeline = {1, 2};
    return space;
  };
  const std::vector<SizedModel> models =
      size_models(problem, budget, {{2048, 24}, {1024, 12}, {512, 2}, {1024, 1}}, {space_of});
  for (const SizedModel& model : models) {
    ASSERT_TRUE(model.plan.has_value());
    EXPECT_EQ(model.plan->layout.gpus(), budget.gpus);
    EXPECT_NEAR(model.tokens / model.tokens_in_budget, model.days / budget.days, 1e-9);
  }
  EXPECT_EQ(largest_within(models, 1e9), 0);
  EXPECT_EQ(largest_within(models, models[1].days), 1);
  EXPECT_EQ(largest_within(models, 1e-9), -1);
  EXPECT_EQ(least_loss_within(models), 0);
}

TEST(SizeModels, EndsWithWhatItHas) {
  int asked = 0;
  const auto is_stopped = [&] { return ++asked > 2; };
  const auto space_of = [](const LayoutProblem&) {
    LayoutSpace space;
    space.data = {16};
    return space;
  };
  const std::vector<SizedModel> models =
      size_models(test::layout_problem(64), {16, 2, 312e12}, {{1024, 12}, {512, 2}, {512, 1}},
                  {space_of, is_stopped});
  ASSERT_EQ(models.size(), 1U);
  EXPECT_TRUE(models.front().plan.has_value());
}

TEST(PlanRates, OfTheBestAreNoSlower) {
  LayoutProblem problem = test::layout_problem(64);
  LayoutSpace space;
  space.tensor = {1, 2, 4, 8};
  space.data = {1, 2, 4, 8, 16};
  space.pipeline = {1, 2, 4};
  const PlanRates baseline = plan_rates(problem, space, RatePlans::baseline, 64);
  const PlanRates best = plan_rates(problem, space, RatePlans::best, 64);
  ASSERT_EQ(baseline.rates.size(), 8U);
  ASSERT_EQ(best.rates.size(), 8U);
  for (std::size_t i = 0; i < best.rates.size(); ++i) {
    EXPECT_EQ(baseline.plans[i].layout.tensor, 8);
    EXPECT_EQ(baseline.plans[i].layout.pipeline, 1);
    EXPECT_LE(best.plans[i].layout.gpus(), best.rates[i].gpus);
    EXPECT_GE(best.rates[i].rate, baseline.rates[i].rate);
  }
  EXPECT_TRUE(std::ranges::is_sorted(best.rates, {}, &GpuRate::rate));
}

/// One layout a placing: in west, or with a stage or a replica in each.
TEST(SiteRates, AreThoseOfTheFastestLayouts) {
  const LayoutProblem problem = test::two_sites();
  LayoutSpace space;
  space.data = {4};
  space.pipeline = {2};
  LayoutSearchOptions options;
  options.exhaustive = options.keeps_all = true;
  std::map<std::vector<int>, Duration> fastest;
  for (const LayoutPlan& plan : search_layouts(problem, space, options).plans) {
    const auto [known, is_new] =
        fastest.try_emplace(gpus_of_sites(problem, plan.layout), plan.iteration);
    if (!is_new) known->second = std::min(known->second, plan.iteration);
  }
  ASSERT_EQ(fastest.size(), 2U);
  const std::vector<SiteRate> found = site_rates(problem, space);
  ASSERT_EQ(found.size(), 2U);
  for (const SiteRate& each : found)
    EXPECT_EQ(each.rate, 1e9 / static_cast<double>(fastest.at(each.gpus).count()));
}

}  // namespace
}  // namespace longhaul::planner
