#include <gtest/gtest.h>

#include "base/coverage.hpp"
#include "base/error.hpp"
#include "base/statistics/sample.hpp"

namespace longhaul {
namespace {

using testing::coverage_is_at_least;

struct KnownLimit {
  std::size_t n, m, critical;
};

/// Tables of Mann and Whitney's U, two-sided, 5%: the largest U that is significant is critical, so
/// the interval starts one further in.
TEST(RankSum, LimitsAreThoseOfTheTables) {
  for (const KnownLimit known : {KnownLimit{4, 4, 0},
                                 {5, 5, 2},
                                 {5, 8, 6},
                                 {6, 6, 5},
                                 {7, 10, 14},
                                 {8, 8, 13},
                                 {10, 10, 23},
                                 {12, 17, 57},
                                 {20, 20, 127}}) {
    EXPECT_EQ(rank_sum_limit(known.n, known.m), known.critical + 1) << known.n << " " << known.m;
    EXPECT_EQ(rank_sum_limit(known.m, known.n), known.critical + 1) << known.m << " " << known.n;
  }
}

TEST(RankSum, ThereIsNoneForTooFewValues) {
  EXPECT_FALSE(rank_sum_limit(3, 3));
  EXPECT_FALSE(rank_sum_limit(1, 38));
  EXPECT_FALSE(rank_sum_limit(0, 9));
  EXPECT_EQ(rank_sum_limit(1, 39), 1U);  // one in 40 lies below all others
  EXPECT_EQ(rank_sum_limit(2, 8), 1U);
}

/// Where the exact count ends the normal one goes on, a little on the safe side.
TEST(RankSum, TheNormalLimitMeetsTheExactOne) {
  const auto exact = static_cast<double>(*rank_sum_limit(141, 141));   // 19,881 pairs
  const auto normal = static_cast<double>(*rank_sum_limit(142, 142));  // 20,164 pairs
  EXPECT_NEAR(normal - exact, (142 * 142 - 141 * 141) / 2.0 * 0.865, 12);
  EXPECT_LE(*rank_sum_limit(3, 6700), static_cast<std::size_t>(3 * 6700 * 0.1771));
}

TEST(RankSum, RatioOfKnownValues) {
  const std::vector<double> a{1, 2, 4, 8};
  const std::vector<double> b{2, 4, 8, 16};
  // Pairs b / a: 1/4, 1/2 twice, 1 three times, 2 four, 4 three, 8 twice, 16.
  const Ratio ratio = ratio_of(a, b);
  EXPECT_EQ(ratio.estimate, 2);
  EXPECT_EQ(ratio.interval->low, 0.25);
  EXPECT_EQ(ratio.interval->high, 16);
  EXPECT_FALSE(ratio_of(std::vector<double>{1, 2, 3}, b).interval);
}

TEST(RankSum, EqualValuesAreNotToldApart) {
  const std::vector<double> same(10, 0.1);
  const Ratio ratio = ratio_of(same, same);
  EXPECT_EQ(ratio.estimate, 1);
  EXPECT_EQ(ratio.interval->low, 1);
  EXPECT_EQ(ratio.interval->high, 1);
}

TEST(RankSum, RefusesWhatHasNoRatio) {
  EXPECT_THROW((void)ratio_of(std::vector<double>{0, 1}, std::vector<double>{1}), Error);
  EXPECT_THROW((void)ratio_of({}, std::vector<double>{1}), Error);
}

/// Of every n and m and however skewed: the interval holds the factor that was put in.
TEST(RankSum, TheIntervalCoversTheFactor) {
  std::uint64_t seed = 100;
  for (const auto& [n, m] : {std::pair{4U, 4U}, {6U, 6U}, {8U, 20U}, {20U, 20U}}) {
    const auto covers = [&, sizes = std::pair{n, m}](Random& random) {
      constexpr double kFactor = 1.07;
      std::vector<double> a(sizes.first), b(sizes.second);
      for (double& value : a) value = 1 / (1 - 0.9 * random.uniform());
      for (double& value : b) value = kFactor / (1 - 0.9 * random.uniform());
      const Ratio ratio = ratio_of(a, b);
      return ratio.interval->low <= kFactor && kFactor <= ratio.interval->high;
    };
    EXPECT_TRUE(testing::coverage_is_at_least(0.95, ++seed, covers)) << n << " " << m;
  }
}

/// Outside the test's assumptions: medians are equal, but one sample varies three times as much.
TEST(RankSum, SpreadsThatDifferCostLittleWhereSamplesAreOfOneSize) {
  const auto covers = [](Random& random) {
    std::vector<double> a(20), b(20);
    for (double& value : a) value = 100 + random.normal();
    for (double& value : b) value = 100 + 3 * random.normal();
    const Ratio ratio = ratio_of(a, b);
    return ratio.interval->low <= 1 && 1 <= ratio.interval->high;
  };
  EXPECT_TRUE(testing::coverage_is_at_least(0.93, 200, covers));
}

/// A difference of one standard deviation is nearly always found with 20 iterations each.
TEST(RankSum, FindsADifference) {
  const auto finds = [](Random& random) {
    std::vector<double> a(20), b(20);
    for (double& value : a) value = 100 + random.normal();
    for (double& value : b) value = 101.5 + random.normal();
    return ratio_of(a, b).interval->low > 1;
  };
  EXPECT_TRUE(testing::coverage_is_at_least(0.98, 300, finds));
}

}  // namespace
}  // namespace longhaul
