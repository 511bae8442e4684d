#include "training/replay/replay_local.hpp"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/rivals/outer_steps.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "training/replay/compressed_parts.hpp"

namespace longhaul::testing {
namespace {

using ::testing::Each;
using ::testing::Pointwise;
using training::Replayed;
using training::ReplayInput;
using training::StepKind;

nn::ModelShape local_shape() {
  return {.batch = 2,
          .sequence = 8,
          .hidden = 16,
          .intermediate = 14,
          .heads = 4,
          .kv_heads = 2,
          .vocabulary = 32,
          .layers = 3};
}

/// Replicas of two parts; an iteration is so many steps of each.
ReplayInput local_run(int replicas, int steps) {
  const std::size_t count = nn::parameter_places(local_shape(), {0, local_shape().layers}).numbers;
  ReplayInput input;
  input.shape = local_shape();
  input.seed = 5;
  input.batches.assign(static_cast<std::size_t>(replicas), 2);
  input.site_of_replica.assign(static_cast<std::size_t>(replicas), 0);
  input.microbatches = steps;
  input.text = nn::SyntheticText{local_shape(), 3};
  input.parts = {{0, 512}, {512, count - 512}};
  input.compress.method = CompressMethod::none;
  input.step.kind = StepKind::sgd;
  input.step.learning_rate = 0.05F;
  input.iterations = 4;
  return input;
}

Replayed replayed_locally(const ReplayInput& input) {
  const auto math = nn::make_cpu_math();
  return training::replay(*math, input);
}

void expect_close(const std::vector<float>& found, const std::vector<float>& expected) {
  EXPECT_THAT(found, Pointwise(::testing::FloatNear(1e-5F), expected));
}

TEST(ReplayLocal, OfOneStepWithoutMomentumIsDenseSgd) {
  ReplayInput input = local_run(3, 1);
  const Replayed dense = replayed_locally(input);
  input.local = training::ReplayLocalSteps{1, 0, 1, 0, 0.5F, false};
  const Replayed local = replayed_locally(input);
  expect_close(local.weights, dense.weights);
  for (std::size_t i = 0; i < dense.loss.size(); ++i)
    EXPECT_NEAR(local.loss[i], dense.loss[i], 1e-6) << i;
}

/// Steps of replicas that never mix what comes in are theirs alone; the outer steps differ.
TEST(ReplayLocal, MixesWhatItIsTold) {
  ReplayInput input = local_run(2, 4);
  input.local = training::ReplayLocalSteps{0.7F, 0.9F, 2, 1, 1, true};
  const Replayed own = replayed_locally(input);
  input.local->mixing = 0.5F;
  const Replayed half = replayed_locally(input);
  input.local->mixing = 0;
  const Replayed none = replayed_locally(input);
  EXPECT_EQ(own.loss.size(), 4U);
  EXPECT_NE(own.loss.back(), half.loss.back());
  EXPECT_NE(half.loss.back(), none.loss.back());
  // Replicas alone: no exchange changes what they learn.
  input.local = training::ReplayLocalSteps{0, 0, 1, 3, 1, false};
  EXPECT_EQ(replayed_locally(input).loss, own.loss);
}

/// Fragments of which each is mixed in at once meet as one whole does, only at other steps.
TEST(ReplayLocal, LearnsInFragments) {
  ReplayInput input = local_run(2, 4);
  input.iterations = 6;
  for (const int fragments : {1, 2})
    for (const int overlap : {0, 1}) {
      input.local = training::ReplayLocalSteps{0.7F, 0.9F, fragments, overlap, 0.5F, true};
      const Replayed found = replayed_locally(input);
      EXPECT_LT(found.loss.back(), found.loss.front()) << fragments << " " << overlap;
    }
}

TEST(ReplayLocal, RoundsAsRanksDo) {
  for (const std::size_t count : {1U, 128U, 300U}) {
    std::vector<float> found = numbers_like_gradients(count, count), expected = found;
    training::round_to_fifteen(found);
    compress::round_to_int4(expected);
    EXPECT_EQ(found, expected);
  }
}

/// What rounding leaves is sent later: with it, weights end nearer to those of exact exchanges.
TEST(ReplayLocal, FeedsBackWhatRoundingLeaves) {
  ReplayInput input = local_run(2, 2);
  input.iterations = 12;
  input.local = training::ReplayLocalSteps{1, 0, 2, 0, 0.5F, false};
  const Replayed exact = replayed_locally(input);
  input.local->rounds = true;
  const auto apart = [&](const Replayed& found) {
    double sum = 0;
    for (std::size_t i = 0; i < exact.weights.size(); ++i)
      sum +=
          std::fabs(static_cast<double>(found.weights[i]) - static_cast<double>(exact.weights[i]));
    return sum;
  };
  const Replayed without = replayed_locally(input);
  EXPECT_THAT(without.residuals, Each(Each(0)));
  input.local->feedback = true;
  const Replayed with = replayed_locally(input);
  EXPECT_LT(apart(with), apart(without));
  EXPECT_GT(*std::ranges::max_element(with.residuals[1]), 0);
}

TEST(ReplayLocal, RefusesFragmentsThatDoNotFit) {
  ReplayInput input = local_run(2, 4);
  for (const auto& [fragments, overlap] : {std::pair{3, 0}, {0, 0}, {2, 2}, {1, 4}}) {
    input.local = training::ReplayLocalSteps{0.7F, 0.9F, fragments, overlap, 0.5F, true};
    EXPECT_THROW((void)replayed_locally(input), Error) << fragments << " " << overlap;
  }
}

}  // namespace
}  // namespace longhaul::testing
