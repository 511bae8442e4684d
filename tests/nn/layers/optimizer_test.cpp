#include "nn/layers/optimizer.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/cpu/cpu_tensor_ops.hpp"

namespace longhaul::nn {

namespace {

class OptimizerTest : public ::testing::Test {
protected:
  [[nodiscard]] Buffer numbers(std::uint64_t seed) {
    Buffer made = memory_.take(kCount, "numbers");
    math_->fill_random(seed, 1, made.view());
    return made;
  }
  [[nodiscard]] std::vector<float> read(const Buffer& from) {
    std::vector<float> found(from.view().count);
    math_->copy_out(from.view(), found);
    return found;
  }
  static constexpr std::size_t kCount = 103;
  std::unique_ptr<TensorOps> math_ = make_cpu_math();
  DeviceMemory memory_{*math_, 0};
};

TEST_F(OptimizerTest, DescentKeepsNoState) {
  Optimizer sgd{*math_, memory_, {OptimizerKind::sgd, 0.5F}, kCount, "weights"};
  EXPECT_EQ(memory_.held(), 0U);
  const Buffer gradient = numbers(1), weights = numbers(2);
  std::vector<float> expected = read(weights);
  const std::vector<float> slope = read(gradient);
  for (std::size_t i = 0; i < kCount; ++i) expected[i] -= 0.5F * slope[i];
  sgd.step(1, gradient.view(), weights.view(), weights.view());
  EXPECT_EQ(read(weights), expected);
}

TEST_F(OptimizerTest, AdamKeepsTwoMoments) {
  const Optimizer adamw{*math_, memory_, {OptimizerKind::adamw, 0.5F}, kCount, "weights"};
  EXPECT_EQ(memory_.held(), 2 * 4 * kCount);
}

/// While the gradient stays the same AdamW goes by the learning rate, whatever its size, and
/// decays.
TEST_F(OptimizerTest, StepsOfASteadyGradientAreTheLearningRate) {
  const OptimizerOptions options{OptimizerKind::adamw, 0.01F};
  Optimizer adamw{*math_, memory_, options, kCount, "weights"};
  const Buffer gradient = numbers(1), weights = numbers(2);
  const std::vector<float> slope = read(gradient);
  for (int step = 1; step <= 4; ++step) {
    const std::vector<float> before = read(weights);
    adamw.step(step, gradient.view(), weights.view(), weights.view());
    const std::vector<float> after = read(weights);
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_NEAR(after[i], before[i] * (1 - 0.01F * 0.1F) - std::copysign(0.01F, slope[i]), 1e-6);
    }
  }
}

TEST_F(OptimizerTest, ShardsStepAsTheWholeDoes) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    const OptimizerOptions options{kind, 0.01F};
    Optimizer whole{*math_, memory_, options, kCount, "whole"};
    Optimizer first{*math_, memory_, options, 40, "first"};
    Optimizer rest{*math_, memory_, options, kCount - 40, "rest"};
    Optimizer none{*math_, memory_, options, 0, "none"};
    const Buffer together = numbers(5), apart = numbers(5);
    for (int step = 1; step <= 5; ++step) {
      const Buffer gradient = numbers(static_cast<std::uint64_t>(step) + 10);
      whole.step(step, gradient.view(), together.view(), together.view());
      const ArrayView mine = apart.view().part(0, 40), other = apart.view().part(40, kCount - 40);
      first.step(step, gradient.view().part(0, 40), mine, mine);
      rest.step(step, gradient.view().part(40, kCount - 40), other, other);
      const ArrayView nothing = apart.view().part(kCount, 0);
      none.step(step, nothing, nothing, nothing);
    }
    EXPECT_EQ(read(together), read(apart));
    EXPECT_NE(read(together), read(numbers(5)));
  }
}

TEST_F(OptimizerTest, MomentsThatDoNotFitAreNamed) {
  DeviceMemory small{*math_, 7 * kCount};
  try {
    const Optimizer adamw{*math_, small, {}, kCount, "stage 3"};
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("stage 3: second moments: 412 B are more"));
  }
  EXPECT_EQ(small.held(), 0U);
}

}  // namespace

}  // namespace longhaul::nn
