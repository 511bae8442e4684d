#include "compress/rivals/outer_steps.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

constexpr std::size_t kNumbers = 24;
constexpr float kRate = 0.1F;

/// Replicas that fall towards a point of their own each, with SGD inside, and meet after so many
/// steps.
class Replicas {
public:
  Replicas(std::size_t count, std::int64_t local_steps, const OuterSettings& settings)
      : local_steps_{local_steps}, anchor_(kNumbers, 1) {
    for (std::size_t r = 0; r < count; ++r) {
      weights_.push_back(anchor_);
      outer_.emplace_back(settings, anchor_);
    }
  }

  static std::vector<float> gradient(std::size_t replica, const std::vector<float>& weights) {
    std::vector<float> gradient = gradient_of(kNumbers, replica + 1);
    for (std::size_t i = 0; i < kNumbers; ++i) gradient[i] += weights[i];
    return gradient;
  }

  void step(std::int64_t iteration) {
    for (std::size_t r = 0; r < weights_.size(); ++r) {
      const std::vector<float> own = gradient(r, weights_[r]);
      for (std::size_t i = 0; i < kNumbers; ++i) weights_[r][i] -= kRate * own[i];
    }
    if (iteration % local_steps_ != 0) return;
    std::vector<float> mean(kNumbers);
    for (const std::vector<float>& weights : weights_)
      for (std::size_t i = 0; i < kNumbers; ++i)
        mean[i] += (anchor_[i] - weights[i]) / static_cast<float>(weights_.size());
    for (std::size_t r = 0; r < weights_.size(); ++r) outer_[r].merge(mean, weights_[r]);
    anchor_ = weights_[0];
  }

  [[nodiscard]] const std::vector<float>& weights(std::size_t replica) const {
    return weights_[replica];
  }

private:
  std::int64_t local_steps_;
  std::vector<float> anchor_;
  std::vector<std::vector<float>> weights_;
  std::vector<OuterSteps> outer_;
};

TEST(OuterSteps, OfOneLocalStepAreDenseSgd) {
  Replicas replicas{3, 1, {.rate = 1, .momentum = 0}};
  std::vector<float> dense(kNumbers, 1);
  for (std::int64_t iteration = 1; iteration <= 20; ++iteration) {
    replicas.step(iteration);
    std::vector<float> sum(kNumbers);
    for (std::size_t r = 0; r < 3; ++r) {
      const std::vector<float> own = Replicas::gradient(r, dense);
      for (std::size_t i = 0; i < kNumbers; ++i) sum[i] += own[i];
    }
    for (std::size_t i = 0; i < kNumbers; ++i) dense[i] -= kRate * sum[i] / 3;
  }
  for (std::size_t i = 0; i < kNumbers; ++i) {
    EXPECT_NEAR(replicas.weights(0)[i], dense[i], 1e-5);
    EXPECT_EQ(replicas.weights(0)[i], replicas.weights(2)[i]);
  }
}

/// By hand: the mean of the weights, and Nesterov outside.
TEST(OuterSteps, AreDiLoCo) {
  Replicas replicas{2, 4, {.rate = 0.7F, .momentum = 0.9F}};
  std::vector<std::vector<float>> weights(2, std::vector<float>(kNumbers, 1));
  std::vector<float> anchor(kNumbers, 1), momentum(kNumbers);
  for (std::int64_t iteration = 1; iteration <= 12; ++iteration) {
    replicas.step(iteration);
    for (std::size_t r = 0; r < 2; ++r) {
      const std::vector<float> own = Replicas::gradient(r, weights[r]);
      for (std::size_t i = 0; i < kNumbers; ++i) weights[r][i] -= kRate * own[i];
    }
    if (iteration % 4 != 0) continue;
    for (std::size_t i = 0; i < kNumbers; ++i) {
      const float gradient = anchor[i] - (weights[0][i] + weights[1][i]) / 2;
      momentum[i] = 0.9F * momentum[i] + gradient;
      anchor[i] -= 0.7F * (gradient + 0.9F * momentum[i]);
      weights[0][i] = weights[1][i] = anchor[i];
    }
  }
  EXPECT_EQ(replicas.weights(0), replicas.weights(1));
  for (std::size_t i = 0; i < kNumbers; ++i)
    EXPECT_NEAR(replicas.weights(1)[i], weights[1][i], 1e-4);
}

TEST(OuterSteps, KeepTheirMomentum) {
  OuterSteps outer{{.momentum = 0.5F}, std::vector<float>{0}};
  std::vector<float> weights(1);
  outer.merge(std::vector<float>{-1}, weights);
  EXPECT_EQ(weights[0], 1.5F);
  EXPECT_THAT(outer.momenta(), ::testing::ElementsAre(-1));
  OuterSteps again{{.momentum = 0.5F}, weights};
  again.set_momenta(outer.momenta());
  outer.merge(std::vector<float>{0}, weights);
  const std::vector<float> gone_on = weights;
  again.merge(std::vector<float>{0}, weights);
  EXPECT_EQ(weights, gone_on);
  EXPECT_THROW(again.set_momenta(std::vector<float>(2)), Error);
}

TEST(SparseOuterGradient, SendsTwoBitsANumberAndForgetsSlowly) {
  std::vector<float> numbers{1, -3, 10, -14};
  round_to_two_bits(numbers);
  EXPECT_THAT(numbers, ::testing::ElementsAre(2, -2, 12, -12));
  SparseOuterGradient sparse{0.25, 0.5F, chunks_of({}, 4, 64, 4096), 4};
  const SparseSet sent = sparse.take(std::vector<float>{1, 8, 2, 4});
  EXPECT_THAT(sent.blocks, ::testing::ElementsAre(1));
  EXPECT_THAT(sparse.residual(), ::testing::ElementsAre(1, 0, 2, 4));
  EXPECT_THAT(sparse.take(std::vector<float>(4)).values, ::testing::ElementsAre(2));
  EXPECT_THAT(sparse.residual(), ::testing::ElementsAre(0.5, 0, 1, 0));
}

/// Of a matrix of 2 x 4 in two chunks of 2 x 2 one number each, though the first has the two
/// largest.
TEST(SparseOuterGradient, ChoosesInEachChunk) {
  const std::vector<TensorShape> tensors{{0, 2, 4}};
  SparseOuterGradient sparse{0.25, 0.5F, chunks_of(tensors, 8, 2, 4), 8};
  const SparseSet sent = sparse.take(std::vector<float>{8, 1, 1, 1, 9, 2, 4, 3});
  EXPECT_THAT(sent.blocks, ::testing::ElementsAre(4, 6));
  EXPECT_THAT(sent.values, ::testing::ElementsAre(9, 4));
  EXPECT_THAT(sparse.residual(), ::testing::ElementsAre(8, 1, 1, 1, 0, 2, 0, 3));
}

TEST(Int4, HasSevenStepsEachWay) {
  std::vector<float> numbers{7, -7, 3.4F, -0.6F, 0.4F};
  round_to_int4(numbers);
  EXPECT_THAT(numbers, ::testing::ElementsAre(7, -7, 3, -1, 0));
}

}  // namespace
}  // namespace longhaul::compress::test
