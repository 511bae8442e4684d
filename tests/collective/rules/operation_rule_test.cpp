#include "collective/rules/operation_rule.hpp"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"

namespace longhaul::collective {
namespace {

using std::chrono_literals::operator""ms;
using ::testing::ElementsAre;

/// Computation 8, communication 6, of it 5 between nodes; groups of 2 and of 8.
OperationCosts costs_with(Duration independent, bool grouped, Duration computation = 8ms) {
  return {.computation = computation,
          .communication = 6ms,
          .inter = 5ms,
          .intra = 1ms,
          .independent = independent,
          .inter_size = 2,
          .intra_size = 8,
          .most_chunks = 4,
          .grouped = grouped};
}

TEST(OperationRule, CutsNothingThatIndependentComputationHides) {
  EXPECT_THAT(operation_granularity(costs_with(7ms, false)), ElementsAre(Fraction{1, 1}));
  EXPECT_THAT(operation_granularity(costs_with(6ms, true)), ElementsAre(Fraction{1, 1}));
}

TEST(OperationRule, CutsEvenlyAsIndependentComputationFitsIn) {
  const Fraction third{1, 3}, quarter{1, 4};
  EXPECT_THAT(operation_granularity(costs_with(2ms, false)), ElementsAre(third, third, third));
  EXPECT_THAT(operation_granularity(costs_with(0ms, false)),
              ElementsAre(quarter, quarter, quarter, quarter));
  EXPECT_THAT(operation_granularity(costs_with(4ms, false)),
              ElementsAre(Fraction{1, 2}, Fraction{1, 2}));             // 1.5 is rounded up
  EXPECT_EQ(operation_granularity(costs_with(1ms, false)).size(), 4U);  // 6 are too many
}

TEST(OperationRule, CutsByGroups) {
  EXPECT_THAT(operation_granularity(costs_with(5ms + std::chrono::microseconds{500}, true)),
              ElementsAre(Fraction{1, 8}, Fraction{7, 8}));
  EXPECT_THAT(operation_granularity(costs_with(2ms, true)),
              ElementsAre(Fraction{1, 2}, Fraction{1, 16}, Fraction{7, 16}));
  EXPECT_THAT(operation_granularity(costs_with(2ms, true, 100ms)),
              ElementsAre(Fraction{1, 2}, Fraction{1, 2}));
  // Equal costs are not "more than": 80 = 2 x 8 x 5.
  EXPECT_EQ(operation_granularity(costs_with(2ms, true, 80ms)).size(), 3U);
  EXPECT_EQ(operation_granularity(costs_with(5ms, true)).size(), 3U);
}

TEST(OperationRule, LeavesOutPartsOfSizeZero) {
  OperationCosts costs = costs_with(2ms, true);
  costs.inter_size = 1;
  EXPECT_THAT(operation_granularity(costs), ElementsAre(Fraction{1, 1}));
  costs.intra_size = 1;
  costs.inter_size = 4;
  EXPECT_THAT(operation_granularity(costs), ElementsAre(Fraction{1, 4}, Fraction{3, 4}));
}

TEST(OperationRule, PartsAddUpToOne) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random{seed};
    OperationCosts costs;
    for (Duration* const cost :
         {&costs.computation, &costs.communication, &costs.inter, &costs.intra, &costs.independent})
      *cost = Duration{random.between(0, 100)};
    costs.inter_size = static_cast<int>(random.between(1, 9));
    costs.intra_size = static_cast<int>(random.between(1, 9));
    costs.most_chunks = static_cast<int>(random.between(1, 6));
    costs.grouped = random.between(0, 1) == 1;
    const std::vector<Fraction> parts = operation_granularity(costs);
    const std::int64_t whole = std::int64_t{costs.inter_size} * costs.intra_size * 60;
    std::int64_t sum = 0;
    for (const Fraction& part : parts) {
      ASSERT_GT(part.numerator, 0) << seed;
      ASSERT_EQ(whole % part.denominator, 0) << seed;
      ASSERT_EQ(std::gcd(part.numerator, part.denominator), 1) << seed;
      sum += whole / part.denominator * part.numerator;
    }
    ASSERT_EQ(sum, whole) << seed;
    if (!costs.grouped) {
      ASSERT_LE(std::ssize(parts), costs.most_chunks) << seed;
    }
  }
}

TEST(OperationRule, RefusesSizesBelowOne) {
  OperationCosts costs = costs_with(2ms, true);
  costs.inter_size = 0;
  EXPECT_THROW((void)operation_granularity(costs), Error);
  costs = costs_with(-2ms, false);
  EXPECT_THROW((void)operation_granularity(costs), Error);
}

}  // namespace
}  // namespace longhaul::collective
