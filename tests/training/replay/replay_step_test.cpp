#include "training/replay/replay_step.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/kernels/cpu_level.hpp"
#include "compress/optimizer/sparse_optimizer.hpp"
#include "training/replay/compressed_parts.hpp"

namespace longhaul::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using training::LazySteps;
using training::ReplaySet;
using training::ReplayStepper;
using training::StepKind;
using training::StepRule;

compress::OptimizerSettings settings_of(const StepRule& rule) {
  return {*from_string<compress::OptimizerRule>(to_string(rule.kind)),
          *from_string<compress::LazyUpdate>(to_string(rule.lazy)),
          rule.momentum,
          rule.beta1,
          rule.beta2,
          rule.epsilon,
          rule.weight_decay};
}

std::vector<StepRule> every_rule(LazySteps lazy) {
  std::vector<StepRule> rules;
  for (const StepKind kind : every<StepKind>())
    for (const float decay : {0.0F, 0.1F}) {
      StepRule rule;
      rule.kind = kind;
      rule.lazy = lazy;
      rule.learning_rate = 0.03F;
      rule.weight_decay = decay;
      rules.push_back(rule);
    }
  return rules;
}

/// Largest difference of two vectors, relative to the largest number.
double apart(const std::vector<float>& mine, const std::vector<float>& theirs) {
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(mine[i]) - static_cast<double>(theirs[i])));
    largest = std::max(largest, std::abs(static_cast<double>(theirs[i])));
  }
  return most / largest;
}

TEST(ReplayStepper, StepsOnSparseSumsAsRanksDo) {
  constexpr std::size_t kCount = 331;
  for (const StepRule& rule : every_rule(LazySteps::skip))
    for (const int block : {1, 16}) {
      std::vector<float> mine = numbers_like_gradients(kCount, 77), theirs = mine;
      ReplayStepper stepper{rule, kCount};
      compress::SparseOptimizer optimizer{settings_of(rule), kCount, block};
      for (std::uint64_t step = 1; step <= 40; ++step) {
        const compress::SparseSet sum = drawn_set(kCount, block, 0.3, step);
        stepper.step(mine, spread_out(sum));
        optimizer.step(theirs, sum, rule.learning_rate);
        ASSERT_EQ(mine, theirs) << to_string(rule.kind) << ", step " << step;
      }
    }
}

TEST(ReplayStepper, StepsOnWholeGradientsAsRanksDo) {
  constexpr std::size_t kCount = 100;
  for (const LazySteps lazy : every<LazySteps>())
    for (const StepRule& rule : every_rule(lazy)) {
      std::vector<float> mine = numbers_like_gradients(kCount, 7), theirs = mine;
      ReplayStepper stepper{rule, kCount};
      const compress::OptimizerSettings settings = settings_of(rule);
      compress::OptimizerState state = compress::fresh_state(settings, kCount, 1);
      for (std::int64_t step = 1; step <= 40; ++step) {
        ReplaySet sum{kCount};
        sum.numbers = numbers_like_gradients(kCount, static_cast<std::uint64_t>(step));
        sum.has.assign(kCount, 1);
        stepper.step(mine, sum);
        compress::dense_step(settings, step, rule.learning_rate, theirs, sum.numbers, state);
        ASSERT_EQ(mine, theirs) << to_string(rule.kind) << ", step " << step;
      }
    }
}

TEST(ReplayStepper, PlaysWhatRanksCatchUp) {
  constexpr std::size_t kCount = 331;
  constexpr int kBlock = 4;
  for (const StepRule& rule : every_rule(LazySteps::exact)) {
    std::vector<float> mine = numbers_like_gradients(kCount, 77), theirs = mine;
    const std::vector<float> first = mine;
    ReplayStepper stepper{rule, kCount};
    compress::SparseOptimizer optimizer{settings_of(rule), kCount, kBlock};
    for (std::uint64_t step = 1; step <= 300; ++step) {
      const compress::SparseSet sum = drawn_set(kCount, kBlock, 0.03, step);
      stepper.step(mine, spread_out(sum));
      optimizer.step(theirs, sum, rule.learning_rate);
      ASSERT_LT(apart(mine, theirs), 1e-6) << to_string(rule.kind) << ", step " << step;
    }
    stepper.catch_up(mine);
    optimizer.catch_up(theirs);
    EXPECT_LT(apart(mine, theirs), 1e-6) << to_string(rule.kind);
    EXPECT_GT(apart(mine, first), 1e-2);
  }
}

TEST(ReplayStepper, BringsAllUpToDateWhenRanksDo) {
  static_assert(ReplayStepper::kAllAfter == compress::SparseOptimizer::kMostHeld);
  StepRule rule;
  rule.kind = StepKind::adamw;
  rule.lazy = LazySteps::exact;
  rule.weight_decay = 0.01F;
  std::vector<float> mine(20, 1.0F), theirs = mine;
  ReplayStepper stepper{rule, 20};
  compress::SparseOptimizer optimizer{settings_of(rule), 20, 1};
  const compress::SparseSet one{20, 1, {3}, {0.5F}}, none{20, 1, {}, {}};
  for (std::int64_t step = 1; step <= ReplayStepper::kAllAfter; ++step) {
    stepper.step(mine, spread_out(step == 1 ? one : none));
    optimizer.step(theirs, step == 1 ? one : none, rule.learning_rate);
    if (step == 1 || step == ReplayStepper::kAllAfter - 1) {
      EXPECT_EQ(mine[0], 1) << "not touched yet, at step " << step;
    }
  }
  EXPECT_LT(mine[0], 0.25F) << "caught up";
  EXPECT_LT(apart(mine, theirs), 1e-5);
}

TEST(ReplayStepper, SkipsAndCatchesUpAsTheIssueSays) {
  StepRule rule;
  rule.kind = StepKind::momentum;
  rule.learning_rate = 1;
  StepRule exact_rule = rule;
  exact_rule.lazy = LazySteps::exact;
  ReplayStepper dense{rule, 1}, skips{rule, 1}, exact{exact_rule, 1};
  std::vector<float> dense_weight(1), skipped(1), exact_weight(1);
  const std::vector<float> gradients{1, 0, 0, 1}, dense_wanted{-1, -1.9F, -2.71F, -4.439F},
      skip_wanted{-1, -1, -1, -2.9F};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    ReplaySet whole{1}, sum{1};
    whole.has = {1};
    whole.numbers = sum.numbers = {gradients[i]};
    sum.has = {static_cast<std::uint8_t>(gradients[i] != 0 ? 1 : 0)};
    dense.step(dense_weight, whole);
    skips.step(skipped, sum);
    exact.step(exact_weight, sum);
    EXPECT_FLOAT_EQ(dense_weight[0], dense_wanted[i]) << i;
    EXPECT_FLOAT_EQ(skipped[0], skip_wanted[i]) << i;
  }
  EXPECT_FLOAT_EQ(exact_weight[0], -4.439F);
}

TEST(ReplayStepper, RefusesStepsThatNeverEnd) {
  StepRule rule;
  rule.kind = StepKind::momentum;
  rule.momentum = 1;
  EXPECT_NO_THROW((ReplayStepper{rule, 1}));
  rule.lazy = LazySteps::exact;
  EXPECT_THAT([&] { (ReplayStepper{rule, 1}); }, ThrowsMessage<Error>(HasSubstr("momentum is 1")));
  rule.kind = StepKind::adamw;
  rule.beta2 = 1.5F;
  EXPECT_THAT([&] { (ReplayStepper{rule, 1}); }, ThrowsMessage<Error>(HasSubstr("beta2 is 1.5")));
  rule.beta2 = 0.999F;
  rule.epsilon = 0;
  EXPECT_THAT([&] { (ReplayStepper{rule, 1}); }, ThrowsMessage<Error>(HasSubstr("epsilon is 0")));
}

}  // namespace
}  // namespace longhaul::testing
