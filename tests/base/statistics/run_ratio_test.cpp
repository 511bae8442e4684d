// Ratios of programs that were run several times.
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/statistics/sample.hpp"

namespace longhaul {
namespace {

/// Two-sided 5% points of any table of Student's t (Fisher and Yates, table III).
TEST(StudentT, AgreesWithTables) {
  EXPECT_NEAR(student_t(1), 12.706, 5e-4);
  EXPECT_NEAR(student_t(2), 4.303, 5e-4);
  EXPECT_NEAR(student_t(3), 3.182, 5e-4);
  EXPECT_NEAR(student_t(6), 2.447, 5e-4);
  EXPECT_NEAR(student_t(10), 2.228, 5e-4);
  EXPECT_NEAR(student_t(30), 2.042, 5e-4);
  EXPECT_NEAR(student_t(10, 0.99), 3.169, 5e-4);
}

/// Logarithms 0, 2 and 3, 5: means 1 and 4, pooled variance (2 + 2) / 2, error sqrt(2).
TEST(RunRatio, KnownValues) {
  const auto e = [](double x) { return std::exp(x); };
  const Ratio ratio =
      ratio_of_runs(std::vector<double>{e(0), e(2)}, std::vector<double>{e(3), e(5)});
  EXPECT_NEAR(std::log(ratio.estimate), 3, 1e-12);
  ASSERT_TRUE(ratio.interval);
  EXPECT_NEAR(std::log(ratio.interval->low), 3 - 4.302653 * std::sqrt(2), 1e-5);
  EXPECT_NEAR(std::log(ratio.interval->high), 3 + 4.302653 * std::sqrt(2), 1e-5);
}

TEST(RunRatio, OneRunAgainstTwoHasAnIntervalAndOneAgainstOneHasNone) {
  const std::vector<double> one{100}, two{101, 102};
  EXPECT_TRUE(ratio_of_runs(one, two).interval);
  EXPECT_THROW((void)ratio_of_runs(one, one), Error);
  EXPECT_THROW((void)ratio_of_runs({}, two), Error);
  EXPECT_THROW((void)ratio_of_runs(std::vector<double>{0}, two), Error);
}

/// Runs of one program that differ by 2% from start to start: wrong in 5% of 2,000 comparisons,
/// give or take three standard deviations.
TEST(RunRatio, EqualProgramsDifferInOneOfTwentyComparisons) {
  for (const std::size_t runs : {2U, 3U, 4U}) {
    Random random{runs};
    const auto side = [&] {
      std::vector<double> medians(runs);
      for (double& median : medians) median = 1e9 * std::exp(0.02 * random.normal());
      return medians;
    };
    int wrong = 0;
    for (int i = 0; i < 2000; ++i) {
      const Ratio ratio = ratio_of_runs(side(), side());
      wrong += ratio.interval->low > 1 || ratio.interval->high < 1 ? 1 : 0;
    }
    EXPECT_NEAR(wrong, 100, 30) << runs << " runs a side";
  }
}

}  // namespace
}  // namespace longhaul
