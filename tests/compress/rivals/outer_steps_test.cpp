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

/// Replicas that fall towards a point of their own each, with SGD inside.
class Replicas {
public:
  Replicas(std::size_t count, const OuterSettings& settings) {
    for (std::size_t r = 0; r < count; ++r) {
      weights_.push_back(std::vector<float>(kNumbers, 1));
      outer_.emplace_back(settings, weights_[r]);
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
    if (const auto fragment = outer_[0].due(iteration)) {
      mean_.assign(outer_[0].range_of(*fragment).size, 0);
      for (std::size_t r = 0; r < weights_.size(); ++r) {
        const std::vector<float> sent = outer_[r].outer_gradient(*fragment, weights_[r]);
        for (std::size_t i = 0; i < sent.size(); ++i)
          mean_[i] += sent[i] / static_cast<float>(weights_.size());
      }
    }
    if (const auto fragment = outer_[0].arriving(iteration))
      for (std::size_t r = 0; r < weights_.size(); ++r)
        outer_[r].merge(*fragment, mean_, weights_[r]);
  }

  [[nodiscard]] const std::vector<float>& weights(std::size_t replica) const {
    return weights_[replica];
  }

private:
  std::vector<std::vector<float>> weights_;
  std::vector<OuterSteps> outer_;
  std::vector<float> mean_;
};

TEST(OuterSteps, OfOneLocalStepAreDenseSgd) {
  Replicas replicas{3, {.rate = 1, .momentum = 0, .local_steps = 1}};
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

TEST(OuterSteps, WithOneFragmentAreDiLoCo) {
  const OuterSettings diloco{.rate = 0.7F, .momentum = 0.9F, .local_steps = 4};
  OuterSettings streaming = diloco;
  streaming.fragments = 1;
  streaming.overlap = 0;
  Replicas one{2, diloco}, other{2, streaming};
  // DiLoCo by hand: the mean of the weights, and Nesterov outside.
  std::vector<std::vector<float>> weights(2, std::vector<float>(kNumbers, 1));
  std::vector<float> anchor(kNumbers, 1), momentum(kNumbers);
  for (std::int64_t iteration = 1; iteration <= 12; ++iteration) {
    one.step(iteration);
    other.step(iteration);
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
  EXPECT_EQ(one.weights(0), other.weights(0));
  for (std::size_t i = 0; i < kNumbers; ++i) EXPECT_NEAR(one.weights(1)[i], weights[1][i], 1e-4);
}

TEST(OuterSteps, SendFragmentsInTurn) {
  const std::vector<float> weights(10);
  const OuterSteps outer{{.local_steps = 6, .fragments = 3, .overlap = 1}, weights};
  std::vector<int> due, arriving;
  for (std::int64_t iteration = 1; iteration <= 8; ++iteration) {
    due.push_back(outer.due(iteration).value_or(-1));
    arriving.push_back(outer.arriving(iteration).value_or(-1));
  }
  EXPECT_THAT(due, ::testing::ElementsAre(-1, 0, -1, 1, -1, 2, -1, 0));
  EXPECT_THAT(arriving, ::testing::ElementsAre(-1, -1, 0, -1, 1, -1, 2, -1));
  EXPECT_EQ(outer.range_of(0).size + outer.range_of(1).size + outer.range_of(2).size, 10U);
  EXPECT_EQ(outer.range_of(2).begin + outer.range_of(2).size, 10U);
}

TEST(OuterSteps, RefuseWhatCannotBe) {
  const std::vector<float> weights(10);
  EXPECT_THROW((OuterSteps{{.local_steps = 5, .fragments = 2}, weights}), Error);
  EXPECT_THROW((OuterSteps{{.local_steps = 4, .overlap = 4}, weights}), Error);
  EXPECT_THROW((OuterSteps{{.local_steps = 0}, weights}), Error);
}

TEST(SparseOuterGradient, SendsTwoBitsANumberAndForgetsSlowly) {
  std::vector<float> numbers{1, -3, 10, -14};
  round_to_two_bits(numbers);
  EXPECT_THAT(numbers, ::testing::ElementsAre(2, -2, 12, -12));
  SparseOuterGradient sparse{0.25, 0.5F, 4};
  const SparseSet sent = sparse.take(std::vector<float>{1, 8, 2, 4});
  EXPECT_THAT(sent.blocks, ::testing::ElementsAre(1));
  EXPECT_THAT(sparse.residual(), ::testing::ElementsAre(1, 0, 2, 4));
  EXPECT_THAT(sparse.take(std::vector<float>(4)).values, ::testing::ElementsAre(2));
  EXPECT_THAT(sparse.residual(), ::testing::ElementsAre(0.5, 0, 1, 0));
}

TEST(Int4, HasSevenStepsEachWay) {
  std::vector<float> numbers{7, -7, 3.4F, -0.6F, 0.4F};
  round_to_int4(numbers);
  EXPECT_THAT(numbers, ::testing::ElementsAre(7, -7, 3, -1, 0));
}

}  // namespace
}  // namespace longhaul::compress::test
