#include "planner/tune/nelder_mead.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace longhaul::planner {
namespace {

TEST(NelderMead, FindsTheValleyOfRosenbrock) {
  const auto rosenbrock = [](std::span<const double> x) {
    return std::pow(1 - x[0], 2) + 100 * std::pow(x[1] - x[0] * x[0], 2);
  };
  const Minimum found = nelder_mead(rosenbrock, {-1.2, 1}, {.tolerance = 1e-14});
  EXPECT_NEAR(found.at[0], 1, 1e-4);
  EXPECT_NEAR(found.at[1], 1, 1e-4);
  EXPECT_LT(found.evaluations, 1000);
}

TEST(NelderMead, StaysWhereThePointsMayBe) {
  const auto function = [](std::span<const double> x) {
    return x[0] < 2 ? std::numeric_limits<double>::infinity() : x[0];
  };
  const Minimum found = nelder_mead(function, {5});
  EXPECT_GE(found.at[0], 2);
  EXPECT_NEAR(found.at[0], 2, 1e-3);
}

TEST(NelderMead, EndsAfterSoManyEvaluations) {
  const auto falling = [](std::span<const double> x) { return -x[0]; };
  EXPECT_LE(nelder_mead(falling, {0}, {.most_evaluations = 50}).evaluations, 53);
  EXPECT_EQ(nelder_mead([](std::span<const double>) { return 3.0; }, {}).value, 3);
}

// Corners of 0, 1 and 2; the worst reflected is 0.5: no new best, but better than the second worst,
// so that it is taken without another look.
TEST(NelderMead, TakesAReflectionThatBeatsTheSecondWorst) {
  std::vector<std::vector<double>> looks;
  const auto function = [&](std::span<const double> x) {
    looks.emplace_back(x.begin(), x.end());
    return x[0] + 1.25 * x[1] + 0.75 * x[1] * x[1];
  };
  const Minimum found = nelder_mead(function, {0, 0}, {.step = 1, .most_evaluations = 4});
  EXPECT_EQ(looks, (std::vector<std::vector<double>>{{0, 0}, {1, 0}, {0, 1}, {1, -1}}));
  EXPECT_EQ(found.evaluations, 4);
  EXPECT_EQ(found.value, 0);
}

}  // namespace
}  // namespace longhaul::planner
