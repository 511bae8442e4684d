#include "training/parts/local_methods.hpp"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "compress/rivals/bit_payloads.hpp"
#include "compress/rivals/outer_steps.hpp"
#include "training/parts/replicas.hpp"

namespace longhaul::training {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

/// Steps locally and then meets: weights after `rounds` exchanges.
std::vector<float> after_local_steps(const RivalSettings& settings, const StepSettings& inner,
                                     int rounds) {
  constexpr std::size_t kCount = 300;
  Replicas replicas{rival(settings, inner), 2, kCount};
  std::vector<LocalSteps> local(2, LocalSteps{inner, kCount});
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::vector<float>> outer;
    for (std::size_t r = 0; r < 2; ++r) {
      local[r].start(replicas.weights[r]);
      for (int h = 0; h < settings.local_steps; ++h)
        local[r].step(drawn(
            kCount, static_cast<std::uint64_t>(100 * (settings.local_steps * round + h)) + r));
      outer.push_back(local[r].outer_gradient());
    }
    replicas.play(round, outer);
  }
  return replicas.weights[0];
}

TEST(LocalMethods, OfOneLocalStepAreDenseSgd) {
  const StepSettings sgd = rule(compress::OptimizerRule::sgd, 0.1F);
  Replicas none{dense(sgd), 2, 300};
  for (int i = 0; i < 5; ++i) {
    std::vector<std::vector<float>> gradients;
    for (std::uint64_t r = 0; r < 2; ++r) {
      gradients.push_back(drawn(300, static_cast<std::uint64_t>(100 * i) + r));
      for (float& number : gradients.back()) number /= 2;
    }
    none.play(i, gradients);
  }
  for (const Rival each : {Rival::localsgd, Rival::diloco})
    EXPECT_THAT(after_local_steps({.rival = each}, sgd, 5),
                Pointwise(FloatNear(1e-5F), none.weights[0]))
        << to_string(each);
}

/// One fragment that is met at once, of f32: the method is DiLoCo's, and so is the plan.
TEST(LocalMethods, StreamDiLoCoWithOneFragment) {
  const StepSettings inner = rule(compress::OptimizerRule::adamw, 0.01F);
  RivalSettings diloco{.rival = Rival::diloco}, streaming{.rival = Rival::streaming_diloco};
  for (RivalSettings* const each : {&diloco, &streaming}) {
    each->local_steps = 3;
    each->outer_rate = 0.7F;
    each->momentum = 0.9F;
  }
  EXPECT_EQ(after_local_steps(streaming, inner, 4), after_local_steps(diloco, inner, 4));
  streaming.bits = kFourBits;
  EXPECT_NE(after_local_steps(streaming, inner, 4), after_local_steps(diloco, inner, 4));
}

/// Of 4 bits a set is as long as the plan says; its sum is that of what receivers decode.
TEST(LocalMethods, StreamingDiLoCoSendsFourBits) {
  RivalSettings settings{.rival = Rival::streaming_diloco};
  settings.bits = kFourBits;
  Replicas replicas{rival(settings), 2, 1000};
  const std::vector<float> before = replicas.weights[0];
  std::vector<std::vector<float>> outer{drawn(1000, 3), drawn(1000, 4)};
  replicas.play(0, outer);
  EXPECT_EQ(replicas.set_bytes, compress::four_bit_bytes(1000));
  for (auto& each : outer) compress::round_to_int4(each);
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(replicas.weights[0][i], before[i] - (outer[0][i] + outer[1][i]) / 2) << i;
}

/// Fragments of 4 bits with feedback: what was sent and what waits are all outer gradients. Where
/// 128 numbers of one fragment do not arrive, both replicas' account says so.
TEST(LocalMethods, StreamingDiLoCoLosesNothingThatIsFedBack) {
  constexpr std::size_t kCount = 300;
  RivalSettings settings{.rival = Rival::streaming_diloco};
  settings.bits = kFourBits;
  const auto lost = [&](bool drops) {
    Replicas replicas{rival(settings), 2, kCount};
    if (drops)
      replicas.on_the_way = [](int iteration, std::size_t replica, std::vector<std::byte>& set) {
        if (iteration != 2 || replica != 1) return;
        std::vector<float> numbers = compress::decode_four_bits(set, {.source = "a member"});
        std::fill_n(numbers.begin() + compress::kInt4Group, compress::kInt4Group, 0.0F);
        set = compress::encode_four_bits(numbers);
      };
    for (int i = 0; i < 6; ++i) replicas.play(i, gradients_of(2, i, kCount));
    return replicas.first().gradients_seen().empty() ? -1 : replicas.lost();
  };
  EXPECT_EQ(lost(false), -1) << "without feedback rounding is lost by design";
  settings.feedback = true;
  EXPECT_LT(lost(false), 1e-6);
  EXPECT_GT(lost(true), 1e-2);
}

TEST(LocalMethods, MixWhatAllHaveIntoTheirOwn) {
  LocalSteps local{rule(compress::OptimizerRule::sgd, 1), 2};
  local.start(std::vector<float>{1, 2});
  local.step(std::vector<float>{-1, -2});
  local.meet(std::vector<float>{4, 8}, 0.5F);
  EXPECT_THAT(local.weights(), ElementsAre(3, 6));
  EXPECT_THAT(local.outer_gradient(), ElementsAre(1, 2)) << "from what all have";
  local.meet(std::vector<float>{4, 8}, 0);
  EXPECT_THAT(local.weights(), ElementsAre(4, 8));
}

/// Moments, anchors and outer momentum: the next steps are of the same bits.
TEST(LocalMethods, OfDiLoCoGoOnFromACheckpoint) {
  const StepSettings inner = rule(compress::OptimizerRule::adamw, 0.01F);
  RivalSettings settings{.rival = Rival::streaming_diloco};
  settings.momentum = 0.9F;
  settings.bits = kFourBits;
  settings.feedback = true;
  const PartPlace place{40, 1, 1, 0};
  auto method = make_rival(settings, place, inner);
  LocalSteps local{inner, 40};
  std::vector<float> weights = drawn(40, 1);
  local.start(weights);
  const auto play = [&](PartMethod& of, LocalSteps& steps, std::vector<float>& all, int round) {
    steps.step(drawn(40, static_cast<std::uint64_t>(10 + round)));
    const std::vector<std::byte> set = of.own_set(round, steps.outer_gradient());
    of.merge(round, std::vector<SetPayload>{{"itself", set}});
    of.step(round, all);
    steps.meet(all, 0.5F);
  };
  for (int round = 0; round < 3; ++round) play(*method, local, weights, round);
  StateWriter writer;
  method->save(writer);
  local.save(writer);
  StateReader reader{writer.bytes()};
  auto again = make_rival(settings, place, inner);
  LocalSteps local_again{inner, 40};
  again->load(reader);
  local_again.load(reader);
  EXPECT_TRUE(reader.is_over());
  std::vector<float> weights_again = weights;
  for (int round = 3; round < 6; ++round) {
    play(*method, local, weights, round);
    play(*again, local_again, weights_again, round);
    EXPECT_EQ(weights_again, weights) << round;
    EXPECT_EQ(local_again.weights(), local.weights()) << round;
    EXPECT_THAT(again->residual(), ElementsAreArray(method->residual()));
  }
}

TEST(LocalMethods, OfSgdMoveByTheMeanOfAllLocalSteps) {
  const StepSettings sgd = rule(compress::OptimizerRule::sgd, 0.1F);
  RivalSettings four{.rival = Rival::localsgd}, one{.rival = Rival::localsgd};
  four.local_steps = 4;
  // Gradients that do not depend on weights: when replicas meet does not matter.
  EXPECT_THAT(after_local_steps(four, sgd, 2),
              Pointwise(FloatNear(1e-5F), after_local_steps(one, sgd, 8)));
  RivalSettings diloco = four;
  diloco.rival = Rival::diloco;
  diloco.momentum = 0.9F;
  EXPECT_GT(std::fabs(after_local_steps(diloco, sgd, 2)[0] - after_local_steps(four, sgd, 2)[0]),
            1e-3F)
      << "momentum counts";
}

TEST(LocalMethods, KeepMomentsOverExchanges) {
  const StepSettings momentum = rule(compress::OptimizerRule::momentum, 1);
  LocalSteps local{momentum, 1};
  const std::vector<float> zero{0}, one{1};
  local.start(zero);
  local.step(one);
  local.start(zero);
  local.step(zero);
  EXPECT_FLOAT_EQ(local.outer_gradient()[0], momentum.optimizer.momentum);
}

TEST(LocalMethods, SparseLoCoSendsLittleAndTheRestLater) {
  RivalSettings settings{.rival = Rival::sparseloco, .keep = 0.05};
  settings.decay = 1;
  Replicas replicas{rival(settings), 2, 1000};
  const std::vector<float> before = replicas.weights[0];
  const std::vector<float> same = drawn(1000, 3);
  for (int i = 0; i < 400; ++i) replicas.play(i, {same, same});
  double apart = 0, all = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double moved =
        static_cast<double>(before[i]) - static_cast<double>(replicas.weights[0][i]);
    const double waits = static_cast<double>(replicas.first().residual()[i]);
    apart += std::fabs(moved + waits - 400 * static_cast<double>(same[i]));
    all += std::fabs(400 * static_cast<double>(same[i]));
  }
  EXPECT_LT(apart / all, 1e-4);
}

}  // namespace
}  // namespace longhaul::training
