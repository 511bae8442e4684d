#include "training/parts/rival_methods.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "compress/rivals/one_bit.hpp"
#include "compress/wire/dense.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/make_schedule.hpp"
#include "scenario/reader/load.hpp"
#include "training/parts/espresso.hpp"
#include "training/parts/local_methods.hpp"

namespace longhaul::training {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<float> drawn(std::size_t count, std::uint64_t seed) {
  Random random{seed};
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random.normal());
  return numbers;
}

StepSettings rule(compress::OptimizerRule rule, float rate) {
  StepSettings step;
  step.optimizer.rule = rule;
  step.learning_rate = rate;
  return step;
}

/// Replicas of one part, each with weights of its own, which an exchange has to keep equal.
class Replicas {
public:
  Replicas(const MakePartMethod& make, int replicas, std::size_t count) {
    const PartPlace place{static_cast<std::int64_t>(count), replicas, 1, 0};
    for (int r = 0; r < replicas; ++r) methods_.push_back(make(place));
    weights.assign(to_size(replicas), drawn(count, 1));
  }

  /// All sets of an iteration are made, and then summed by each.
  void play(int iteration, const std::vector<std::vector<float>>& gradients) {
    std::vector<std::vector<std::byte>> payloads;
    for (std::size_t r = 0; r < methods_.size(); ++r) {
      payloads.push_back(methods_[r]->own_set(iteration, gradients[r]));
      EXPECT_LE(payloads.back().size(), methods_[r]->largest_set());
    }
    std::vector<SetPayload> sets;
    for (const auto& payload : payloads) sets.push_back({"a member", payload});
    for (std::size_t r = 0; r < methods_.size(); ++r) {
      methods_[r]->merge(iteration, sets);
      methods_[r]->step(iteration, weights[r]);
      EXPECT_EQ(weights[r], weights[0]) << "replica " << r << ", iteration " << iteration;
    }
    set_bytes = payloads.front().size();
  }
  [[nodiscard]] const PartMethod& first() const { return *methods_.front(); }

  std::vector<std::vector<float>> weights;
  std::size_t set_bytes = 0;

private:
  std::vector<std::unique_ptr<PartMethod>> methods_;
};

MakePartMethod rival(const RivalSettings& settings, const StepSettings& step = {}) {
  return [=](const PartPlace& place) { return make_rival(settings, place, step); };
}

MakePartMethod dense(const StepSettings& step) {
  GradientCompression none;
  none.method = CompressMethod::none;
  return [=](const PartPlace& place) { return make_part_method(none, place, step); };
}

/// Of each replica: its share of the mean gradient.
std::vector<std::vector<float>> gradients_of(int replicas, int iteration, std::size_t count) {
  std::vector<std::vector<float>> gradients;
  for (int r = 0; r < replicas; ++r) {
    gradients.push_back(drawn(count, static_cast<std::uint64_t>(100 + 10 * iteration + r)));
    for (float& number : gradients.back()) number /= static_cast<float>(replicas);
  }
  return gradients;
}

TEST(Rivals, DgcThatKeepsAllIsMomentumSgd) {
  const StepSettings step = rule(compress::OptimizerRule::momentum, 0.1F);
  RivalSettings settings{.rival = Rival::dgc, .keep = 1};
  settings.momentum = step.optimizer.momentum;
  Replicas dgc{rival(settings, step), 3, 200}, none{dense(step), 3, 200};
  for (int i = 0; i < 6; ++i) {
    dgc.play(i, gradients_of(3, i, 200));
    none.play(i, gradients_of(3, i, 200));
  }
  EXPECT_THAT(dgc.weights[0], Pointwise(FloatNear(1e-5F), none.weights[0]));
}

TEST(Rivals, DgcSendsMoreWhileItsRampLasts) {
  RivalSettings settings{.rival = Rival::dgc, .keep = 0.01};
  settings.warm_up = 1;
  settings.index = compress::IndexFormat::coo32;
  Replicas dgc{rival(settings), 2, 1000};
  std::vector<std::size_t> bytes;
  for (int i = 0; i < 3; ++i) {
    dgc.play(i, gradients_of(2, i, 1000));
    bytes.push_back(dgc.set_bytes - compress::kPayloadHeader);
  }
  EXPECT_THAT(bytes, ElementsAre(250 * 8, 62 * 8, 15 * 8));
}

TEST(Rivals, DemoOfAllCoefficientsStepsBySignsOfTheSum) {
  RivalSettings settings{.rival = Rival::demo, .keep = 1};
  StepSettings step;
  step.learning_rate = 0.25F;
  Replicas demo{rival(settings, step), 3, 150};
  const std::vector<float> before = demo.weights[0];
  const auto gradients = gradients_of(3, 0, 150);
  demo.play(0, gradients);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const float sum = gradients[0][i] + gradients[1][i] + gradients[2][i];
    EXPECT_NEAR(before[i] - demo.weights[0][i], std::copysign(0.25F, sum), 1e-6F) << i;
  }
}

/// compress::OneBitAdam plays all replicas at once; two of them divide without rounding.
TEST(Rivals, OneBitIsOneBitAdam) {
  constexpr std::size_t kCount = 130;
  StepSettings step = rule(compress::OptimizerRule::sgd, 0.01F);
  RivalSettings settings{.rival = Rival::onebit};
  settings.warm_up = 3;
  Replicas replicas{rival(settings, step), 2, kCount};
  compress::OneBitAdam adam{{.warm_up = 3}, 2, kCount};
  std::vector<float> weights = drawn(kCount, 1);
  for (int i = 0; i < 8; ++i) {
    auto gradients = gradients_of(2, i, kCount);
    replicas.play(i, gradients);
    for (auto& gradient : gradients)
      for (float& number : gradient) number *= 2;
    adam.step(weights, gradients, 0.01F);
    EXPECT_THAT(replicas.weights[0], Pointwise(FloatNear(1e-6F), weights)) << "step " << i;
    EXPECT_EQ(replicas.set_bytes, 12 + (i < 3 ? 4 * kCount : (kCount + 7) / 8)) << "step " << i;
  }
}

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

TEST(Rivals, OfOneLocalStepAreDenseSgd) {
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

TEST(Rivals, OfSgdMoveByTheMeanOfAllLocalSteps) {
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

TEST(Rivals, KeepMomentsOverExchanges) {
  const StepSettings momentum = rule(compress::OptimizerRule::momentum, 1);
  LocalSteps local{momentum, 1};
  const std::vector<float> zero{0}, one{1};
  local.start(zero);
  local.step(one);
  local.start(zero);
  local.step(zero);
  EXPECT_FLOAT_EQ(local.outer_gradient()[0], momentum.optimizer.momentum);
}

TEST(Rivals, SparseLoCoSendsLittleAndTheRestLater) {
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

TEST(Rivals, SendWhatTheirSizeSays) {
  constexpr std::size_t kCount = 64'000;
  for (const Rival each : every<Rival>()) {
    RivalSettings settings{.rival = each, .keep = each == Rival::demo ? 0.125 : 0.05};
    settings.warm_up = each == Rival::onebit ? 1 : 0;
    Replicas replicas{rival(settings), 1, kCount};
    for (int i = 0; i < 2; ++i) replicas.play(i, gradients_of(1, i, kCount));
    const double nominal = bits_per_number(settings) * kCount / 8;
    EXPECT_NEAR(static_cast<double>(replicas.set_bytes) / nominal, 1, 0.02) << to_string(each);
  }
}

TEST(Rivals, RefuseWhatCannotBe) {
  const auto made = [](const RivalSettings& settings, int staleness) {
    return make_rival(settings, {64, 2, 1, staleness}, {});
  };
  EXPECT_THROW((void)made({.rival = Rival::onebit}, 0), Error) << "no warm-up";
  for (const Rival each : {Rival::localsgd, Rival::diloco, Rival::sparseloco}) {
    EXPECT_THROW((void)made({.rival = each}, 1), Error) << to_string(each);
    EXPECT_NO_THROW((void)made({.rival = each}, 0)) << to_string(each);
  }
  EXPECT_THROW((void)made({.rival = Rival::dgc, .keep = 0}, 0), Error);
}

TEST(Rivals, RefuseSetsOfOthers) {
  const std::vector<float> gradient = drawn(64, 1);
  const std::vector<std::byte> dense = compress::encode_dense(gradient, compress::DenseFormat::f32);
  for (const Rival each : {Rival::dgc, Rival::demo, Rival::onebit, Rival::sparseloco}) {
    RivalSettings settings{.rival = each};
    settings.warm_up = 1;
    const auto method = make_rival(settings, {64, 2, 1, 0}, {});
    const std::vector<SetPayload> sets{{"rank 1", dense}};
    EXPECT_THROW(method->merge(1, sets), Error) << to_string(each);
    EXPECT_THROW((void)method->site_set(1, sets), Error) << to_string(each);
    std::vector<float> bad = gradient;
    bad[5] = NAN;
    EXPECT_THROW((void)method->own_set(1, bad), compress::NotFinite) << to_string(each);
  }
}

/// Two replicas apart, whose model of 4 MB is in two parts.
Scenario two_parts() {
  return scenario::parse_scenario(R"([costs]
forward = "3ms"
backward = "6ms"
weights = "4MB"
[parallel]
stages = 1
replicas = 2
microbatches = 1
gradient_sync = "compressed"
[train]
parts = 2
[train.compress]
method = "none"
[[datacenter]]
name = "west"
replicas = "0"
[[datacenter]]
name = "east"
replicas = "1"
[[link]]
between = ["west", "east"]
latency = "1ms"
bandwidth = "1Gbps"
)",
                                  "test", {});
}

TEST(Rivals, ResizeTheSetsOfAPlan) {
  const Scenario scenario = two_parts();
  const Schedule schedule = planner::make_schedule("stella", scenario).schedule;
  const Plan before = plan::lower(schedule, scenario);
  Plan after = before;
  resize_sets(after, [](int part) { return part == 0 ? 1 : 8; });
  int messages = 0;
  for (std::size_t i = 0; i < before.ops.size(); ++i) {
    const Op &old = before.ops[i], &resized = after.ops[i];
    if (old.kind == OpKind::compute) {
      EXPECT_EQ(resized, old);
      continue;
    }
    ++messages;
    const int smaller = old.part == 0 ? 32 : 4;
    EXPECT_EQ(resized.size.count(), old.size.count() / smaller);
    EXPECT_EQ(resized.duration, old.kind == OpKind::send ? old.duration / smaller : old.duration);
  }
  EXPECT_EQ(messages, 8) << "both sides of two parts from two replicas";
}

TEST(Rivals, SayHowMuchMoreTheySendAtFirst) {
  RivalSettings settings{.rival = Rival::onebit};
  settings.warm_up = 2;
  EXPECT_THAT(early_bits(settings), ElementsAre(32, 32));
  settings = {.rival = Rival::dgc, .keep = 0.015, .index = compress::IndexFormat::coo32};
  EXPECT_THAT(early_bits(settings), ElementsAre());
  settings.warm_up = 2;
  EXPECT_THAT(early_bits(settings), ElementsAre(16, 16, 4, 4, 1, 1)) << "then 0.96";
  EXPECT_THAT(early_bits({.rival = Rival::localsgd}), ElementsAre());
}

TEST(Espresso, ChoosesBySizeAsIfOn25Gbps) {
  GradientCompression sparse;
  sparse.keep = 0.01;
  // 4n / 3.125 GB/s against half of it and 30 us and 4n / 100 GB/s: halves from 50,000 numbers on.
  EXPECT_EQ(espresso_choice(sparse, 49'000, 2), CompressMethod::none);
  EXPECT_EQ(espresso_choice(sparse, 51'000, 2), CompressMethod::fp16);
  // Blocks take 90 us and 0.61 ns a number, halves 30 us and 0.68 ns.
  EXPECT_EQ(espresso_choice(sparse, 100'000'000, 2), CompressMethod::block);
  EspressoCosts slow;
  slow.bytes_per_second = 1e6;
  EXPECT_EQ(espresso_choice(sparse, 49'000, 2, slow), CompressMethod::block);
}

TEST(Espresso, GivesEachPartItsMethodAndSize) {
  Scenario scenario = two_parts();
  GradientCompression sparse = scenario.train.compress;
  sparse.method = CompressMethod::block;
  const Schedule schedule = planner::make_schedule("stella", scenario).schedule;
  const Plan before = plan::lower(schedule, scenario);
  Plan after = before;
  const std::vector<CompressMethod> chosen = choose_for_parts(after, sparse, 2);
  EXPECT_THAT(chosen, ElementsAre(CompressMethod::fp16, CompressMethod::fp16))
      << "of 500,000 numbers";
  for (std::size_t i = 0; i < before.ops.size(); ++i) {
    if (before.ops[i].kind != OpKind::send) continue;
    EXPECT_EQ(after.ops[i].size.count(), before.ops[i].size.count() / 2);
  }
  const std::vector<float> gradient = drawn(1000, 1);
  const std::vector<CompressMethod> mixed{CompressMethod::none, CompressMethod::block};
  for (const int number : {0, 1}) {
    const auto method = make_espresso(mixed, sparse, {1000, 2, 1, 0, number}, {});
    EXPECT_EQ(method->own_set(0, gradient).size() > 1000, number == 0) << "part " << number;
  }
}

}  // namespace
}  // namespace longhaul::training
