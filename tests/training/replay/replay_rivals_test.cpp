#include "training/replay/replay_rivals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/rivals/outer_steps.hpp"
#include "training/parts/replicas.hpp"

namespace longhaul::training {
namespace {

struct ReplayedCase {
  const char* name;
  RivalSettings of_ranks;
  ReplayRival of_replay;
};

std::vector<ReplayedCase> replayed_cases() {
  std::vector<ReplayedCase> cases;
  const auto add = [&](const char* name, const RivalSettings& ranks, ReplayedRival method) {
    cases.push_back(
        {name, ranks, {method, ranks.keep, ranks.momentum, ranks.decay, ranks.warm_up}});
  };
  add("dgc", {.rival = Rival::dgc, .keep = 0.03, .momentum = 0.9F}, ReplayedRival::dgc);
  add("all of dgc", {.rival = Rival::dgc, .keep = 1, .momentum = 0.5F}, ReplayedRival::dgc);
  add("ramp of dgc", {.rival = Rival::dgc, .keep = 0.01, .momentum = 0.9F, .warm_up = 2},
      ReplayedRival::dgc);
  add("demo", {.rival = Rival::demo, .keep = 0.1, .decay = 0.99F}, ReplayedRival::demo);
  add("all of demo", {.rival = Rival::demo, .keep = 1, .decay = 0.9F}, ReplayedRival::demo);
  add("onebit", {.rival = Rival::onebit, .warm_up = 5}, ReplayedRival::onebit);
  return cases;
}

/// Of the replay, after as many iterations with the same gradients.
struct ReplayedPart {
  std::unique_ptr<ReplayRivalPart> part;
  std::vector<float> weights;

  void play(const std::vector<std::vector<float>>& gradients) {
    part->run(std::vector<std::span<const float>>{gradients.begin(), gradients.end()}, weights);
  }
};

/// A part whose end is no whole chunk of cosines.
TEST(ReplayRivals, HaveTheBitsOfRanks) {
  constexpr std::size_t kCount = 1000;
  const StepSettings step = rule(compress::OptimizerRule::adamw, 0.01F);
  StepRule replayed;
  replayed.learning_rate = step.learning_rate;
  for (const ReplayedCase& each : replayed_cases()) {
    Replicas ranks{rival(each.of_ranks, step), 3, kCount};
    ReplayedPart again{make_replayed_rival(each.of_replay, replayed, 3, kCount), ranks.weights[0]};
    for (int i = 0; i < 14; ++i) {
      ranks.play(i, gradients_of(3, i, kCount));
      again.play(gradients_of(3, i, kCount));
      ASSERT_EQ(again.weights, ranks.weights[0]) << each.name << ", iteration " << i;
    }
    for (std::size_t r = 0; r < 3; ++r)
      EXPECT_TRUE(std::ranges::equal(again.part->residual(r), ranks.of(r).residual()))
          << each.name << ", replica " << r;
  }
}

/// In chunks of a matrix of 96 x 70 (48 x 35), after a vector of 67 and zeros.
TEST(ReplayRivals, TransformTensorsAsRanksDo) {
  constexpr std::size_t kCount = 80 + 96 * 70;
  const std::vector<nn::ParameterPlace> tensors{{"norm", 0, 67, 1}, {"matrix", 80, 96, 70}};
  RivalSettings settings{.rival = Rival::demo, .keep = 0.01, .decay = 0.9F};
  StepSettings step;
  const auto of_ranks = [&](PartPlace place) {
    place.tensors = tensors;
    return make_rival(settings, place, step);
  };
  StepRule replayed;
  replayed.learning_rate = step.learning_rate;
  Replicas ranks{of_ranks, 2, kCount};
  ReplayedPart again{
      make_replayed_rival({ReplayedRival::demo, 0.01, 0, 0.9F}, replayed, 2, kCount, tensors),
      ranks.weights[0]};
  for (int i = 0; i < 3; ++i) {
    auto gradients = gradients_of(2, i, kCount);
    for (std::vector<float>& each : gradients) std::fill_n(each.begin() + 67, 13, 0.0F);
    ranks.play(i, gradients);
    again.play(gradients);
    ASSERT_EQ(again.weights, ranks.weights[0]) << i;
  }
  EXPECT_TRUE(std::ranges::equal(again.part->residual(1), ranks.of(1).residual()));
  // 67 is a prime: chunks of one number each, all sent; of the matrix 4 chunks, 16 numbers of each.
  EXPECT_GT(ranks.set_bytes, 4 * (67 + 4 * 16));
  EXPECT_LT(ranks.set_bytes, 7 * (67 + 4 * 16));
}

/// One gradient that differs is seen: the test above can fail.
TEST(ReplayRivals, SeeAnotherGradient) {
  for (const ReplayedCase& each : replayed_cases()) {
    StepRule step;
    ReplayedPart ones{make_replayed_rival(each.of_replay, step, 2, 200), drawn(200, 1)};
    ReplayedPart others{make_replayed_rival(each.of_replay, step, 2, 200), drawn(200, 1)};
    auto gradients = gradients_of(2, 0, 200);
    gradients[1][7] = 10;
    ones.play(gradients);
    gradients[1][7] = -10;
    others.play(gradients);
    EXPECT_NE(ones.weights, others.weights) << each.name;
  }
}

TEST(ReplayRivals, RoundToFourLevelsAsRanksDo) {
  for (const std::size_t count : {0U, 1U, 2U, 300U}) {
    std::vector<float> found = drawn(count, count + 1), expected = found;
    round_to_four_levels(found);
    compress::round_to_two_bits(expected);
    EXPECT_EQ(found, expected);
  }
}

TEST(ReplayRivals, RefuseWhatCannotBe) {
  const auto made = [](ReplayRival rival) { return make_replayed_rival(rival, {}, 2, 8); };
  EXPECT_THROW((void)made({ReplayedRival::dgc, 0}), Error);
  EXPECT_THROW((void)made({ReplayedRival::dgc, 0.1, 1.5F}), Error);
  EXPECT_THROW((void)made({ReplayedRival::demo, 0.1, 0, 2}), Error);
  EXPECT_THROW((void)made({ReplayedRival::onebit}), Error) << "no warm-up";
}

}  // namespace
}  // namespace longhaul::training
