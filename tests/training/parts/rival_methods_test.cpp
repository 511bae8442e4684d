#include "training/parts/rival_methods.hpp"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "compress/rivals/one_bit.hpp"
#include "compress/wire/dense.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/lowering/part_lowering.hpp"
#include "planner/make_schedule.hpp"
#include "scenario/reader/load.hpp"
#include "training/parts/replicas.hpp"

namespace longhaul::training {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

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

TEST(Rivals, SendWhatTheirSizeSays) {
  constexpr std::size_t kCount = 64'000;
  for (const Rival each : every<Rival>()) {
    if (has_exact_sizes(each)) continue;  // exchanges_of_rival() has their sizes
    RivalSettings settings{.rival = each, .keep = each == Rival::demo ? 0.125 : 0.05};
    settings.warm_up = each == Rival::onebit ? 1 : 0;
    Replicas replicas{rival(settings), 1, kCount};
    for (int i = 0; i < 2; ++i) replicas.play(i, gradients_of(1, i, kCount));
    const double nominal = bits_per_number(settings) * kCount / 8;
    EXPECT_NEAR(static_cast<double>(replicas.set_bytes) / nominal, 1, 0.02) << to_string(each);
  }
}

/// Also of those that forget by design, which does not count, and of what a server still owes.
TEST(Rivals, LoseNothing) {
  for (const Rival each : every<Rival>()) {
    if (each == Rival::powersgd) continue;  // LowRank tests have its
    RivalSettings settings{.rival = each, .keep = 0.05, .momentum = 0.9F, .decay = 0.9F};
    settings.warm_up = each == Rival::onebit ? 4 : 0;
    Replicas replicas{rival(settings, rule(compress::OptimizerRule::sgd, 0.01F)), 3, 1000};
    for (int i = 0; i < 20; ++i) replicas.play(i, gradients_of(3, i, 1000));
    EXPECT_LT(replicas.lost(), 1e-6) << to_string(each);
  }
  const RivalSettings rounded{.rival = Rival::streaming_diloco, .bits = kFourBits};
  Replicas replicas{rival(rounded), 2, 100};
  replicas.play(0, gradients_of(2, 0, 100));
  EXPECT_TRUE(replicas.first().gradients_seen().empty()) << "rounding is lost by design";
}

TEST(Rivals, RefuseWhatCannotBe) {
  const auto made = [](const RivalSettings& settings, int staleness) {
    return make_rival(settings, {64, 2, 1, staleness}, {});
  };
  EXPECT_THROW((void)made({.rival = Rival::onebit}, 0), Error) << "no warm-up";
  for (const Rival each :
       {Rival::localsgd, Rival::diloco, Rival::streaming_diloco, Rival::sparseloco}) {
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

/// Sizes are of messages as they travel, by part and round.
TEST(Rivals, SayWhatTheirExchangesTake) {
  Scenario scenario = two_parts();
  Model model;
  model.layers = 4;
  model.hidden = 16;
  model.intermediate = 32;
  model.heads = model.kv_heads = 2;
  model.vocabulary = 32;
  model.sequence_length = 8;
  model.microbatch_size = 2;
  scenario.model = model;
  scenario.layers = {4};
  const Schedule schedule = planner::make_schedule("stella", scenario).schedule;
  RivalSettings power{.rival = Rival::powersgd};
  power.rank = 2;
  const plan::PartExchanges exchanges = exchanges_of_rival(power, schedule, scenario);
  ASSERT_EQ(exchanges.sizes.size(), 2U);
  EXPECT_EQ(exchanges.rounds(), 2);
  // Part 1: a decoder (48 x 16, 16 x 16, 64 x 16, 16 x 32, two norms) and the head (32 x 16, norm).
  EXPECT_EQ(exchanges.sizes[1][0].count(), 16 + 12 + 4 * (2 * (48 + 16 + 64 + 16 + 32) + 3 * 16));
  EXPECT_EQ(exchanges.sizes[1][1].count(), 16 + 12 + 4 * 2 * (16 + 16 + 16 + 32 + 16));
  const Plan plan = plan::lower_exchanges(schedule, scenario, exchanges);
  std::map<std::int64_t, int> sends, expected;
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::send) ++sends[op.size.count()];
  for (const auto& part : exchanges.sizes)
    for (const Bytes size : part) expected[size.count()] += 2;
  EXPECT_EQ(sends, expected) << "one from each replica";
  RivalSettings streaming{.rival = Rival::streaming_diloco};
  streaming.bits = kFourBits;
  streaming.fragments = 2;
  const plan::PartExchanges fragments = exchanges_of_rival(streaming, schedule, scenario);
  EXPECT_EQ(fragments.fragments, 2);
  EXPECT_EQ(fragments.rounds(), 1);
  const std::size_t numbers = 48 * 16 + 16 * 16 + 64 * 16 + 16 * 32 + 32 * 16 + 3 * 64;
  EXPECT_EQ(fragments.sizes[1][0].count(), 16 + 8 + numbers / 128 * 4 + 4 + numbers / 2);
  EXPECT_TRUE(exchanges_of_rival({.rival = Rival::dgc}, schedule, scenario).sizes.empty());
  power.rank = 17;
  EXPECT_THROW((void)exchanges_of_rival(power, schedule, scenario), Error);
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

}  // namespace
}  // namespace longhaul::training
