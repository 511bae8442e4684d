#include "planner/predict/robust_fit.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace longhaul::planner {
namespace {

using profile::Parameter;
using profile::ParameterValues;

/// The loss of no rows at all, half the square of every distance in spreads, `steps` steps after
/// two parameters start at these factors of their defaults.
double loss_after(int steps, double memory_rate, double alpha_pipeline) {
  const ParameterValues defaults;
  ParameterValues start = defaults;
  start[Parameter::memory_rate] *= memory_rate;
  start[Parameter::alpha_pipeline] *= alpha_pipeline;
  return fit_robustly({}, defaults, start, steps).loss;
}

TEST(RobustFit, CountsDistancesFromTheDefaultsInSpreads) {
  EXPECT_EQ(loss_after(0, 1, 1), 0);
  EXPECT_NEAR(loss_after(0, std::exp(0.2), 1), 0.5, 1e-12);  // a spread of 0.20
  EXPECT_NEAR(loss_after(0, 1, std::exp(-1.0)), 0.5 * 2 * 2, 1e-12);
  EXPECT_NEAR(loss_after(0, std::exp(0.2), std::exp(-1.0)), 2.5, 1e-12);
}

// The loss is a parabola. Without damping a step would end in its lowest point; with 1/100 it
// leaves 1/101 of the way.
TEST(RobustFit, ADampedStepGoesNearlyAllTheWay) {
  const double before = loss_after(0, std::exp(-0.3), std::exp(0.5));
  EXPECT_NEAR(loss_after(1, std::exp(-0.3), std::exp(0.5)), before / (101 * 101), 1e-9);
  EXPECT_LT(loss_after(kManySteps, std::exp(-0.3), std::exp(0.5)), 1e-8);
}

// No step is longer than 0.7 of a logarithm: two of them leave 0.6 of 2.
TEST(RobustFit, LongStepsAreCut) {
  EXPECT_NEAR(loss_after(0, 1, std::exp(-2.0)), 0.5 * 4 * 4, 1e-12);
  EXPECT_NEAR(loss_after(2, 1, std::exp(-2.0)), 0.5 * 1.2 * 1.2, 1e-12);
}

}  // namespace
}  // namespace longhaul::planner
