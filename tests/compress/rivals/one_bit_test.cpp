#include "compress/rivals/one_bit.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

using ::testing::ElementsAre;

TEST(OneBit, SendsSignsAndTheMeanMagnitude) {
  std::vector<float> sum{3, -1, 2, -2};
  const OneBitVector sent = one_bit(sum);
  EXPECT_THAT((std::vector{sent.at(0), sent.at(1), sent.at(2), sent.at(3)}),
              ElementsAre(2, -2, 2, -2));
  EXPECT_THAT(sum, ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(sent.bytes(), 5U);
}

/// Adam of the mean, in double precision.
TEST(OneBitAdam, IsAdamWhileItWarmsUp) {
  OneBitAdam adam{{.warm_up = 100}, 2, 1};
  std::vector<float> weights{1};
  double first = 0, second = 0, weight = 1;
  for (int t = 1; t <= 20; ++t) {
    const auto gradient = static_cast<float>(std::sin(t));
    adam.step(weights, {{gradient}, {3 * gradient}}, 0.1F);
    const double mean = 2 * static_cast<double>(gradient);
    first = 0.9 * first + 0.1 * mean;
    second = 0.999 * second + 0.001 * mean * mean;
    weight -= 0.1 * (first / (1 - std::pow(0.9, t))) /
              (std::sqrt(second / (1 - std::pow(0.999, t))) + 1e-8);
    EXPECT_NEAR(weights[0], weight, 1e-4);
  }
  EXPECT_EQ(adam.bytes_sent(), 4U);
}

TEST(OneBitAdam, ThenSendsABitANumberAndStillDescends) {
  constexpr std::size_t kCount = 64;
  constexpr int kSteps = 300;
  const auto loss = [](const std::vector<float>& weights) {
    double sum = 0;
    for (const float weight : weights) sum += static_cast<double>(weight * weight);
    return sum;
  };
  const std::vector<float> start = gradient_of(kCount, 3);
  const auto trained = [&](OneBitAdam& adam) {
    std::vector<float> weights = start;
    for (int t = 0; t < kSteps; ++t) adam.step(weights, {weights, weights}, 0.01F);
    return loss(weights);
  };
  OneBitAdam adam{{.warm_up = 10}, 2, kCount};
  const double gained = loss(start) - trained(adam);
  EXPECT_TRUE(adam.is_warm());
  EXPECT_EQ(adam.bytes_sent(), 4 + kCount / 8);
  OneBitAdam dense{{.warm_up = kSteps}, 2, kCount};  // Adam: its warm-up does not end
  EXPECT_GT(gained, 0.5 * (loss(start) - trained(dense)));
}

}  // namespace
}  // namespace longhaul::compress::test
