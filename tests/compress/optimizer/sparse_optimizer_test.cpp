#include "compress/optimizer/sparse_optimizer.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/kept_share.hpp"
#include "compress/kernels/cpu_level.hpp"
#include "compress/settings.hpp"
#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

SparseSet one_number(float gradient) { return {1, 1, {0}, {gradient}}; }

TEST(SparseOptimizer, SkipsAndCatchesUpAsTheIssueSays) {
  const OptimizerSettings skip{.momentum = 0.9F};
  const OptimizerSettings exact{.lazy = LazyUpdate::exact, .momentum = 0.9F};
  SparseOptimizer skips{skip, 1, 1}, catches_up{exact, 1, 1};
  OptimizerState state = fresh_state(skip, 1, 1);
  std::vector<float> skipped(1), caught_up(1), dense(1);
  const std::vector<float> dense_wanted{-1, -1.9F, -2.71F, -4.439F}, skip_wanted{-1, -1, -1, -2.9F};
  const std::vector<float> gradients{1, 0, 0, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    const float gradient = gradients[i];
    const SparseSet sum = gradient == 0 ? SparseSet{1, 1, {}, {}} : one_number(gradient);
    skips.step(skipped, sum, 1);
    catches_up.step(caught_up, sum, 1);
    dense_step(skip, static_cast<std::int64_t>(i) + 1, 1, dense, {&gradient, 1}, state);
    EXPECT_FLOAT_EQ(skipped[0], skip_wanted[i]) << i;
    EXPECT_FLOAT_EQ(dense[0], dense_wanted[i]) << i;
  }
  EXPECT_FLOAT_EQ(caught_up[0], -4.439F);
}

/// One weight in double precision, written apart from the code that is tested.
struct DenseWeight {
  double weight = 0, first = 0, second = 0;

  void step(const OptimizerSettings& s, int t, double rate, double gradient) {
    const double mu = s.momentum, b1 = s.beta1, b2 = s.beta2;
    switch (s.rule) {
      case OptimizerRule::sgd: weight -= rate * gradient; break;
      case OptimizerRule::momentum:
        first = mu * first + gradient;
        weight -= rate * first;
        break;
      case OptimizerRule::nesterov:
        first = mu * first + gradient;
        weight -= rate * (gradient + mu * first);
        break;
      case OptimizerRule::adamw:
        weight *= 1 - rate * static_cast<double>(s.weight_decay);
        first = b1 * first + (1 - b1) * gradient;
        second = b2 * second + (1 - b2) * gradient * gradient;
        weight -= rate * (first / (1 - std::pow(b1, t))) /
                  (std::sqrt(second / (1 - std::pow(b2, t))) + static_cast<double>(s.epsilon));
        break;
    }
  }
};

struct Drift {
  double largest = 0;  ///< of a weight, over the largest movement of any
};

/// Random blocks are there in random steps, with a rate that changes; a long silence now and then.
Drift drift_of(const OptimizerSettings& settings, int block, int steps, double share) {
  constexpr std::int64_t kCount = 203;
  Random random{static_cast<std::uint64_t>(steps) + 7};
  SparseOptimizer optimizer{settings, kCount, block};
  std::vector<float> weights(kCount, 1);
  std::vector<DenseWeight> dense(kCount, {1, 0, 0});
  for (int t = 1; t <= steps; ++t) {
    const float rate = 0.01F * static_cast<float>(1 + t % 3);
    SparseSet sum{kCount, block, {}, {}};
    std::vector<double> gradient(kCount);
    for (std::uint32_t b = 0; b < static_cast<std::uint32_t>(blocks_in(kCount, block)); ++b) {
      if (random.uniform() > (b % 3 == 0 ? share / 20 : share)) continue;
      sum.blocks.push_back(b);
      for (std::size_t i = 0; i < sum.size_of(b); ++i) {
        const auto value = static_cast<float>(random.normal() + 0.3);
        sum.values.push_back(value);
        gradient[b * static_cast<std::size_t>(block) + i] = 0.5 * static_cast<double>(value);
      }
    }
    optimizer.step(weights, sum, rate, 0.5F);
    for (std::size_t i = 0; i < dense.size(); ++i)
      dense[i].step(settings, t, static_cast<double>(rate), gradient[i]);
  }
  optimizer.catch_up(weights);
  Drift drift;
  double moved = 0;
  for (const DenseWeight& weight : dense) moved = std::max(moved, std::fabs(weight.weight - 1));
  for (std::size_t i = 0; i < dense.size(); ++i)
    drift.largest = std::max(drift.largest,
                             std::fabs(static_cast<double>(weights[i]) - dense[i].weight) / moved);
  return drift;
}

TEST(SparseOptimizer, ExactEqualsTheDenseOneFedZeros) {
  for (const OptimizerRule rule : every<OptimizerRule>())
    for (const int block : {1, 4, 16})
      for (const int steps : {1, 5, 60, 700}) {
        OptimizerSettings settings{.rule = rule, .lazy = LazyUpdate::exact};
        settings.weight_decay = rule == OptimizerRule::adamw ? 0.1F : 0;
        EXPECT_LT(drift_of(settings, block, steps, 0.1).largest, 3e-5)
            << to_string(rule) << ", blocks of " << block << ", " << steps << " steps";
      }
}

TEST(SparseOptimizer, ExactHoldsForOtherDecaysAndForSmallGradients) {
  const OptimizerSettings slow{.rule = OptimizerRule::adamw,
                               .lazy = LazyUpdate::exact,
                               .beta1 = 0.95F,
                               .beta2 = 0.99F,
                               .epsilon = 0.1F};
  EXPECT_LT(drift_of(slow, 4, 600, 0.05).largest, 3e-5);
  const OptimizerSettings heavy{.lazy = LazyUpdate::exact, .momentum = 0.99F};
  EXPECT_LT(drift_of(heavy, 4, 600, 0.05).largest, 3e-5);
}

/// What a decay leaves of a weight in all steps is far below the least double, what it leaves in a
/// few is not.
TEST(SparseOptimizer, ExactOutlivesWhatADecayLeaves) {
  for (const float decay : {50.0F, 95.0F, 100.0F, 120.0F}) {  // with the rate 0.01
    OptimizerSettings settings{.rule = OptimizerRule::adamw, .lazy = LazyUpdate::exact};
    settings.weight_decay = decay;
    SparseOptimizer optimizer{settings, 3, 1};
    std::vector<float> weights(3, 1);
    std::vector<DenseWeight> dense(3, {1, 0, 0});
    for (int t = 1; t <= 4000; ++t) {
      const bool now[] = {true, t % 600 > 597, t == 7 || t == 3990};
      SparseSet sum{3, 1, {}, {}};
      for (std::uint32_t i = 0; i < 3; ++i) {
        if (now[i]) sum.blocks.push_back(i);
        if (now[i]) sum.values.push_back(1);
        dense[i].step(settings, t, static_cast<double>(0.01F), now[i] ? 1 : 0);
      }
      optimizer.step(weights, sum, 0.01F);
    }
    optimizer.catch_up(weights);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(weights[i], dense[i].weight, 1e-6) << decay << " weight " << i;
  }
}

/// Blocks that are touched early, then late, by which the first few steps are played one by one.
TEST(SparseOptimizer, ExactPlaysTheFirstStepsOfABlockAsDenseOnesDo) {
  for (const int touched : {1, 2, 5, 30}) {
    const OptimizerSettings settings{
        .rule = OptimizerRule::adamw, .lazy = LazyUpdate::exact, .weight_decay = 0.5F};
    SparseOptimizer optimizer{settings, 21, 16};
    std::vector<float> weights(21, 1);
    std::vector<DenseWeight> dense(21, {1, 0, 0});
    for (int t = 1; t <= 300; ++t) {
      SparseSet sum{21, 16, {}, {}};
      if (t == touched || t == 300) {
        sum.blocks = {0, 1};
        for (std::size_t i = 0; i < 21; ++i) sum.values.push_back(0.1F * static_cast<float>(i % 4));
      }
      for (std::size_t i = 0; i < 21; ++i)
        dense[i].step(settings, t, static_cast<double>(0.01F),
                      sum.blocks.empty() ? 0 : static_cast<double>(sum.values[i]));
      optimizer.step(weights, sum, 0.01F);
    }
    for (std::size_t i = 0; i < 21; ++i)
      EXPECT_NEAR(weights[i], dense[i].weight, 1e-6) << "touched at " << touched << ", " << i;
  }
}

TEST(SparseOptimizer, HoldsNoMoreStepsThanItSays) {
  const OptimizerSettings exact{.lazy = LazyUpdate::exact, .momentum = 0.5F};
  const OptimizerSettings skip{.rule = OptimizerRule::adamw};
  SparseOptimizer exact_one{exact, 2, 1}, skips{skip, 2, 1};
  std::vector<float> weights(2), dense(2), others(2);
  OptimizerState state = fresh_state(exact, 2, 1);
  std::int64_t most = 0;
  for (int t = 1; t <= 40'000; ++t) {
    const std::vector<float> gradient{t % 700 == 0 ? 1.0F : 0, t == 3 ? 1.0F : 0};
    SparseSet sum{2, 1, {}, {}};
    for (std::uint32_t i = 0; i < 2; ++i)
      if (gradient[i] != 0) {
        sum.blocks.push_back(i);
        sum.values.push_back(1);
      }
    exact_one.step(weights, sum, 0.01F);
    skips.step(others, sum, 0.01F);
    dense_step(exact, t, 0.01F, dense, gradient, state);
    most = std::max(most, exact_one.held());
    ASSERT_EQ(skips.held(), 0);
  }
  EXPECT_EQ(most, SparseOptimizer::kMostHeld - 1);
  EXPECT_EQ(exact_one.steps(), 40'000);
  exact_one.catch_up(weights);
  EXPECT_NEAR(weights[0], dense[0], 1e-5 * std::fabs(static_cast<double>(dense[0])));
  EXPECT_FLOAT_EQ(weights[1], dense[1]);
}

TEST(SparseOptimizer, SkipAndExactDifferUnlessAllIsThere) {
  OptimizerSettings settings{.rule = OptimizerRule::adamw};
  EXPECT_GT(drift_of(settings, 4, 60, 0.1).largest, 1e-2);
  EXPECT_LT(drift_of(settings, 1, 1, 1.0).largest, 1e-4);
}

TEST(SparseOptimizer, WithAllBlocksIsTheDenseStepBitForBit) {
  for (const OptimizerRule rule : every<OptimizerRule>())
    for (const LazyUpdate lazy : every<LazyUpdate>()) {
      const OptimizerSettings settings{.rule = rule, .lazy = lazy, .weight_decay = 0.01F};
      SparseOptimizer optimizer{settings, 100, 16};
      OptimizerState state = fresh_state(settings, 100, 16);
      std::vector<float> sparse = gradient_of(100, 1), dense = sparse;
      for (int t = 1; t <= 5; ++t) {
        const std::vector<float> gradient = gradient_of(100, static_cast<std::uint64_t>(t) + 1);
        optimizer.step(sparse, whole_set(gradient, 16), 0.1F);
        dense_step(settings, t, 0.1F, dense, gradient, state);
      }
      EXPECT_EQ(sparse, dense) << to_string(rule) << " " << to_string(lazy);
    }
}

TEST(SparseOptimizer, GivesEqualBitsAtEveryLevel) {
  for (const OptimizerRule rule : every<OptimizerRule>()) {
    const OptimizerSettings settings{.rule = rule, .lazy = LazyUpdate::exact};
    std::vector<std::vector<float>> results;
    for (const CpuLevel level : every<CpuLevel>()) {
      const LimitedCpuLevel limited{level};
      SparseOptimizer optimizer{settings, 1000, 16};
      std::vector<float> weights = gradient_of(1000, 1);
      for (std::uint32_t t = 0; t < 200; ++t) {  // AdamW: by steps at first, then by the series
        const std::vector<float> values = gradient_of(32, t);
        optimizer.step(weights, {1000, 16, {t % 31, t % 31 + 30}, values}, 0.1F);
      }
      results.push_back(weights);
      EXPECT_EQ(results.front(), weights) << to_string(rule) << " " << to_string(level);
    }
  }
}

TEST(OptimizerSettings, AreRefusedWhereTheyCannotBe) {
  EXPECT_NO_THROW(check(OptimizerSettings{.momentum = 1}));
  EXPECT_THROW(check(OptimizerSettings{.lazy = LazyUpdate::exact, .momentum = 1}), Error);
  EXPECT_THROW(check(OptimizerSettings{.momentum = 1.1F}), Error);
  EXPECT_THROW(check(OptimizerSettings{.rule = OptimizerRule::adamw, .beta2 = 1}), Error);
  EXPECT_THROW(check(OptimizerSettings{.rule = OptimizerRule::adamw, .epsilon = 0}), Error);
  EXPECT_THROW((SparseOptimizer{{.lazy = LazyUpdate::exact, .momentum = 1}, 10, 1}), Error);
}

}  // namespace
}  // namespace longhaul::compress::test
