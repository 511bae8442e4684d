#include "base/statistics/sample.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/coverage.hpp"
#include "base/error.hpp"

namespace longhaul {
namespace {

using testing::coverage_is;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<double> one_to(std::size_t n) {
  std::vector<double> sample;
  for (std::size_t i = 1; i <= n; ++i) sample.push_back(static_cast<double>(i));
  return sample;
}

struct KnownRanks {
  std::size_t n, low;
  double coverage;
};

/// As tables of the sign test have them; coverage from exact fractions of binomial coefficients.
TEST(MedianRanks, AreThoseOfTheBinomial) {
  for (const KnownRanks known : {KnownRanks{6, 1, 0.96875},
                                 {7, 1, 0.984375},
                                 {8, 1, 0.9921875},
                                 {9, 2, 0.9609375},
                                 {10, 2, 0.978515625},
                                 {11, 2, 0.98828125},
                                 {12, 3, 0.96142578125},
                                 {15, 4, 0.96484375},
                                 {17, 5, 0.950958251953125},
                                 {20, 6, 0.9586105346679688},
                                 {25, 8, 0.9567147493362427},
                                 {30, 10, 0.9572260547429323},
                                 {50, 18, 0.9671608624357315},
                                 {64, 24, 0.9672342409011768},
                                 {100, 40, 0.9647997997822951},
                                 {1000, 469, 0.9537088026395019},
                                 {1001, 470, 0.9500154764972458},
                                 {10'000, 4902, 0.9511670501036181}}) {
    const auto ranks = median_ranks(known.n);
    ASSERT_TRUE(ranks) << known.n;
    EXPECT_EQ(ranks->low, known.low) << known.n;
    EXPECT_EQ(ranks->high, known.n + 1 - known.low) << known.n;
    EXPECT_NEAR(ranks->coverage, known.coverage, 1e-12) << known.n;
  }
}

TEST(MedianRanks, ThereAreNoneWhereTheWholeRangeCoversTooLittle) {
  for (std::size_t n = 0; n < 6; ++n) EXPECT_FALSE(median_ranks(n)) << n;
  EXPECT_FALSE(median_ranks(7, 0.99));  // the range of 7 covers 98.4%
  EXPECT_EQ(median_ranks(8, 0.99)->low, 1U);
  EXPECT_EQ(median_ranks(2, 0.5)->coverage, 0.5);
}

TEST(MedianRanks, HoldForSamplesThatOverflowAPowerOfTwo) {
  const auto ranks = median_ranks(1'000'000);
  ASSERT_TRUE(ranks);
  EXPECT_NEAR(static_cast<double>(ranks->low), 500'000 - 0.98 * 1000, 2);
  EXPECT_GE(ranks->coverage, 0.95);
  EXPECT_LT(ranks->coverage, 0.951);
}

TEST(Summary, SaysThatThereIsNoIntervalInsteadOfInventingOne) {
  const SampleSummary five = summarize({4, 1, 3, 2, 5});
  EXPECT_EQ(five.median, 3);
  EXPECT_FALSE(five.median_interval);
  EXPECT_FALSE(five.relative_width());
  EXPECT_TRUE(summarize(one_to(6)).median_interval);
  EXPECT_EQ(summarize(std::vector<double>{}).n, 0U);
}

TEST(Summary, OfKnownValues) {
  const SampleSummary s = summarize({4, 1, 3, 2, 10, 7, 8, 9, 6, 5});
  EXPECT_EQ(s.n, 10U);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.median, 5.5);
  EXPECT_EQ(s.mean, 5.5);
  EXPECT_EQ(s.p95, 10);
  EXPECT_EQ(s.max, 10);
  EXPECT_EQ(s.median_interval->low, 2);
  EXPECT_EQ(s.median_interval->high, 9);
  EXPECT_EQ(*s.relative_width(), 7 / 5.5);
}

TEST(Summary, TiesAreValuesLikeOthers) {
  const SampleSummary equal = summarize(std::vector<double>(8, 3.0));
  EXPECT_EQ(equal.median_interval->low, 3);
  EXPECT_EQ(equal.median_interval->high, 3);
  EXPECT_EQ(*equal.relative_width(), 0);
  const SampleSummary tied = summarize({1, 1, 1, 1, 2, 2, 2, 2, 9});
  EXPECT_EQ(tied.median, 2);
  EXPECT_EQ(tied.median_interval->low, 1);
  EXPECT_EQ(tied.median_interval->high, 2);  // the second largest
}

TEST(Summary, P95IsTheNearestRank) {
  EXPECT_EQ(summarize(one_to(100)).p95, 95);
  EXPECT_EQ(summarize(one_to(101)).p95, 96);
}

TEST(Summary, NamesWhatLiesBeyondTukeysFencesAndKeepsIt) {
  std::vector<double> sample = one_to(9);  // quartiles 3 and 7: fences -3 and 13
  EXPECT_THAT(summarize(sample).outliers.positions, IsEmpty());
  sample[4] = 100;  // quartiles 3 and 8: fences -4.5 and 15.5
  const SampleSummary s = summarize(sample);
  EXPECT_EQ(s.outliers.fences.low, -4.5);
  EXPECT_EQ(s.outliers.fences.high, 15.5);
  EXPECT_THAT(s.outliers.positions, ElementsAre(4));
  EXPECT_EQ(s.max, 100);
  EXPECT_EQ(s.n, 9U);
  EXPECT_THAT(summarize(std::vector<double>(7, 2.0)).outliers.positions, IsEmpty());
}

/// Three laps of 100 km at 100, 50 and 25 km/h take 7 h: 42.86 km/h, not the mean of 58.3.
TEST(Means, CostsAddUpAndRatesAreWorkOverTime) {
  EXPECT_EQ(arithmetic_mean(std::vector<double>{1, 2, 4}), 7 / 3.0);
  EXPECT_DOUBLE_EQ(harmonic_mean(std::vector<double>{100, 50, 25}), 300 / 7.0);
  EXPECT_EQ(arithmetic_mean({}), 0);
  EXPECT_EQ(harmonic_mean({}), 0);
  EXPECT_THROW((void)harmonic_mean(std::vector<double>{1, 0}), Error);
}

TEST(Means, TheHarmonicMeanOfRatesIsTheWorkOverTheMeanOfTimes) {
  Random random{3};
  std::vector<double> times, rates;
  for (int i = 0; i < 100; ++i) {
    times.push_back(1 + random.uniform());
    rates.push_back(1000 / times.back());
  }
  EXPECT_NEAR(harmonic_mean(rates), 1000 / arithmetic_mean(times), 1e-9);
}

/// The interval covers the median of what was drawn as often as it says, whatever is drawn.
TEST(Summary, TheIntervalCoversAsOftenAsItSays) {
  struct Source {
    double median;
    double (*draw)(Random&);
  };
  const Source normal{0, [](Random& random) { return random.normal(); }};
  const Source skewed{2, [](Random& random) { return 1 / (1 - random.uniform()); }};  // Pareto
  std::uint64_t seed = 0;
  for (const Source& source : {normal, skewed}) {
    for (const std::size_t n : {6U, 9U, 20U, 57U}) {
      const auto covers = [&](Random& random) {
        std::vector<double> sample(n);
        for (double& value : sample) value = source.draw(random);
        const SampleSummary s = summarize(sample);
        return s.median_interval->low <= source.median && source.median <= s.median_interval->high;
      };
      EXPECT_TRUE(testing::coverage_is(median_ranks(n)->coverage, ++seed, covers)) << "n = " << n;
    }
  }
}

TEST(Summary, TiesOnlyWidenTheCoverage) {
  const auto covers = [](Random& random) {
    std::vector<double> sample(20);
    for (double& value : sample) value = static_cast<double>(random.between(1, 3));
    const SampleSummary s = summarize(sample);
    return s.median_interval->low <= 2 && 2 <= s.median_interval->high;
  };
  EXPECT_TRUE(testing::coverage_is_at_least(0.95, 11, covers));
}

}  // namespace
}  // namespace longhaul
