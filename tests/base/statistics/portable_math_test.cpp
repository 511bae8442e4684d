#include "base/statistics/portable_math.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul {
namespace {

TEST(PortableMath, KnownValues) {
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(logarithm(1), 0);
  EXPECT_DOUBLE_EQ(exponential(1), 2.718281828459045);
  EXPECT_DOUBLE_EQ(exponential(-1), 0.36787944117144233);
  EXPECT_DOUBLE_EQ(logarithm(2), 0.6931471805599453);
  EXPECT_DOUBLE_EQ(logarithm(0.1), -2.302585092994046);
  EXPECT_DOUBLE_EQ(logarithm(1e-18), -41.44653167389282);
}

// Bit by bit, as any machine must have it.
TEST(PortableMath, GivesEqualBits) {
  EXPECT_EQ(exponential(0.3), 0x1.599058c8c1a96p+0);
  EXPECT_EQ(exponential(-12.5), 0x1.f42ed3f68e69p-19);
  EXPECT_EQ(logarithm(0.3), -0x1.34378fcbda721p+0);
  EXPECT_EQ(logarithm(1.04), 0x1.414bcc0a3665dp-5);
}

// The standard library's are within an ulp of the truth; ours within some.
TEST(PortableMath, IsCloseToTheStandardLibrary) {
  Random random{1};
  for (int i = 0; i < 100'000; ++i) {
    const double x = (random.uniform() - 0.5) * 80;
    ASSERT_NEAR(exponential(x) / std::exp(x), 1, 1e-15) << x;
    const double y = std::exp((random.uniform() - 0.5) * 80);
    ASSERT_NEAR(logarithm(y), std::log(y), 1e-15 * std::max(1.0, std::abs(std::log(y)))) << y;
    const double near_one = 1 + (random.uniform() - 0.5) / 1000;
    ASSERT_NEAR(logarithm(near_one) / std::log(near_one), 1, 1e-13) << near_one;
  }
  EXPECT_NEAR(exponential(700) / std::exp(700), 1, 1e-15);
  EXPECT_NEAR(exponential(-700) / std::exp(-700), 1, 1e-15);
}

TEST(PortableMath, AreInverse) {
  for (double x = -40; x <= 40; x += 0.37) EXPECT_NEAR(logarithm(exponential(x)), x, 1e-14) << x;
}

}  // namespace
}  // namespace longhaul
