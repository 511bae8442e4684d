#include "compress/rivals/decoupled_momentum.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

TEST(CosineTransform, IsOrthonormal) {
  const std::vector<float> numbers = gradient_of(kDctChunk, 1);
  std::vector<float> coefficients(kDctChunk), again(kDctChunk);
  cosine_transform(numbers, coefficients);
  inverse_cosine_transform(coefficients, again);
  double before = 0, after = 0;
  for (std::size_t i = 0; i < kDctChunk; ++i) {
    EXPECT_NEAR(again[i], numbers[i], 1e-4);
    before += std::pow(numbers[i], 2);
    after += std::pow(coefficients[i], 2);
  }
  EXPECT_NEAR(after / before, 1, 1e-5);
  cosine_transform(std::vector<float>(kDctChunk, 1), coefficients);
  EXPECT_NEAR(coefficients[0], 8, 1e-5);
  EXPECT_NEAR(coefficients[1], 0, 1e-5);
}

TEST(DecoupledMomentum, ThatKeepsAllSendsItsGradient) {
  const std::vector<float> gradient = gradient_of(100, 2);
  DecoupledMomentum demo{static_cast<int>(kDctChunk), 0.9F, 100};
  const std::vector<float> sent = numbers_of(demo.take(gradient), 100);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_NEAR(sent[i], gradient[i], 1e-4);
  for (const float left : demo.momenta()) EXPECT_NEAR(left, 0, 1e-4);
}

TEST(DecoupledMomentum, KeepsWhatItDoesNotSend) {
  const std::vector<float> gradient = gradient_of(kDctChunk, 3);
  DecoupledMomentum demo{4, 0.9F, kDctChunk};
  const SparseSet coefficients = demo.take(gradient);
  EXPECT_EQ(coefficients.blocks.size(), 4U);
  const std::vector<float> sent = numbers_of(coefficients, kDctChunk);
  for (std::size_t i = 0; i < kDctChunk; ++i)
    EXPECT_NEAR(sent[i] + demo.momenta()[i], gradient[i], 1e-4);
}

TEST(DemoStep, FollowsSigns) {
  std::vector<float> weights{1, 1, 1};
  demo_step(weights, std::vector<float>{5, -0.1F, 0}, 0.5F);
  EXPECT_THAT(weights, ::testing::ElementsAre(0.5, 1.5, 1));
  EXPECT_THROW((DecoupledMomentum{0, 0.9F, 10}), Error);
  EXPECT_THROW((DecoupledMomentum{65, 0.9F, 10}), Error);
}

}  // namespace
}  // namespace longhaul::compress::test
