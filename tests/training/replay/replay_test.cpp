#include "training/replay/replay.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/layers/reference.hpp"

namespace longhaul::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::ThrowsMessage;
using training::Replayed;
using training::ReplayInput;
using training::ReplaySet;
using training::StepKind;

nn::ModelShape tiny_shape() {
  return {.batch = 1,
          .sequence = 8,
          .hidden = 16,
          .intermediate = 14,
          .heads = 4,
          .kv_heads = 2,
          .vocabulary = 32,
          .layers = 3};
}

/// Each replica has texts of its own, as many sequences as its batch.
nn::TextSource texts_of(const std::vector<int>& batches) {
  std::vector<nn::SyntheticText> texts;
  for (const int batch : batches) {
    nn::ModelShape shape = tiny_shape();
    shape.batch = batch;
    texts.emplace_back(shape, 3);
  }
  return [texts](int iteration, ReplicaId replica, MicrobatchId microbatch) {
    return texts[index(replica)](iteration, replica, microbatch);
  };
}

std::size_t numbers_of_the_model() {
  const nn::Reference model{nn::make_cpu_math(), tiny_shape(), 1, {}};
  return model.masters().size();
}

/// Three parts; the last block of the first one is short.
ReplayInput tiny_run(const std::vector<int>& batches) {
  static const std::size_t count = numbers_of_the_model();
  ReplayInput input;
  input.shape = tiny_shape();
  input.seed = 5;
  input.batches = batches;
  input.site_of_replica.assign(batches.size(), 0);
  input.text = texts_of(batches);
  input.parts = {{0, 709}, {709, 1024}, {1733, count - 1733}};
  input.compress.method = CompressMethod::none;
  input.compress.share = KeptShare::each;
  input.compress.keep = 0.1;
  input.step.kind = StepKind::momentum;
  input.step.learning_rate = 0.05F;
  input.iterations = 6;
  return input;
}

Replayed replayed(const ReplayInput& input) {
  const auto math = nn::make_cpu_math();
  return training::replay(*math, input);
}

double distance(const std::vector<float>& found, const std::vector<float>& expected) {
  double by = 0, all = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    by += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
    all += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(by / all);
}

/// The text of one replica that has the sequences of all of `batches`.
nn::TextSource all_in_one(const std::vector<int>& batches) {
  return [text = texts_of(batches), count = static_cast<int>(batches.size())](
             int iteration, ReplicaId, MicrobatchId microbatch) {
    nn::MicrobatchText all;
    for (const ReplicaId replica : ids<ReplicaId>(count)) {
      const nn::MicrobatchText one = text(iteration, replica, microbatch);
      all.tokens.insert(all.tokens.end(), one.tokens.begin(), one.tokens.end());
      all.targets.insert(all.targets.end(), one.targets.begin(), one.targets.end());
    }
    return all;
  };
}

TEST(Replay, OfOneReplicaIsTheReference) {
  ReplayInput input = tiny_run({1});
  input.microbatches = 2;
  input.step.kind = StepKind::sgd;
  const Replayed found = replayed(input);
  nn::Reference reference{nn::make_cpu_math(),
                          tiny_shape(),
                          input.seed,
                          {nn::OptimizerKind::sgd, input.step.learning_rate}};
  for (int iteration = 0; iteration < input.iterations; ++iteration) {
    const double loss =
        reference.run(std::vector{input.text(iteration, ReplicaId{0}, MicrobatchId{0}),
                                  input.text(iteration, ReplicaId{0}, MicrobatchId{1})});
    EXPECT_EQ(found.loss[static_cast<std::size_t>(iteration)], loss) << iteration;
    reference.step(iteration + 1);
  }
  EXPECT_EQ(found.weights, reference.masters());
}

TEST(Replay, LowersTheLoss) {
  ReplayInput input = tiny_run({2, 2});
  input.iterations = 60;
  for (const CompressMethod method : every<CompressMethod>()) {
    input.compress.method = method;
    const std::vector<double> loss = replayed(input).loss;
    EXPECT_NEAR(loss.front(), std::log(32), 0.5);
    EXPECT_LT(loss.back(), loss.front() - 0.2) << to_string(method);
  }
}

TEST(Replay, OfReplicasIsThatOfOneWithTheirBatches) {
  for (const std::vector<int>& batches : {std::vector{2, 2, 2}, std::vector{1, 3}}) {
    const Replayed several = replayed(tiny_run(batches));
    ReplayInput input = tiny_run({std::accumulate(batches.begin(), batches.end(), 0)});
    input.text = all_in_one(batches);
    const Replayed one = replayed(input);
    EXPECT_LT(distance(several.weights, one.weights), 1e-5);
    EXPECT_GT(distance(several.weights, replayed(tiny_run({2})).weights), 1e-3);
    for (std::size_t i = 0; i < one.loss.size(); ++i)
      EXPECT_NEAR(several.loss[i], one.loss[i], 1e-5 * one.loss[i]);
  }
}

/// All numbers of all blocks, fed back or not: what a dense method computes.
TEST(Replay, ThatKeepsAllIsDenseBitForBit) {
  for (const StepKind kind : every<StepKind>())
    for (const SetExchange exchange : every<SetExchange>()) {
      ReplayInput input = tiny_run({1, 1, 1});
      input.site_of_replica = {0, 0, 1};
      input.step.kind = kind;
      input.step.learning_rate = 0.01F;
      input.compress.exchange = exchange;
      const Replayed dense = replayed(input);
      EXPECT_EQ(dense.lost_relative, std::nullopt);
      input.compress.keep = 1;
      for (const CompressMethod method : {CompressMethod::block, CompressMethod::threshold,
                                          CompressMethod::topk, CompressMethod::randomk}) {
        input.compress.method = method;
        input.step.lazy =
            method == CompressMethod::topk ? training::LazySteps::exact : training::LazySteps::skip;
        const Replayed found = replayed(input);
        EXPECT_EQ(found.loss, dense.loss) << to_string(method) << ", " << to_string(kind);
        EXPECT_EQ(found.weights, dense.weights) << to_string(method) << ", " << to_string(kind);
        EXPECT_EQ(found.lost_relative.has_value(), true);
      }
    }
}

TEST(Replay, LosesNothingWithFeedback) {
  ReplayInput input = tiny_run({1, 2, 1, 1});
  input.site_of_replica = {0, 1, 0, 1};
  for (const CompressMethod method : every<CompressMethod>())
    for (const SetExchange exchange : every<SetExchange>())
      for (const SetValues values : every<SetValues>()) {
        input.compress.method = method;
        input.compress.exchange = exchange;
        input.compress.values = values;
        const Replayed found = replayed(input);
        if (!is_sparse(method)) {
          EXPECT_EQ(found.lost_relative, std::nullopt);
          EXPECT_THAT(found.residuals, Each(Each(0)));
          continue;
        }
        EXPECT_LT(found.lost_relative.value(), 1e-6)
            << to_string(method) << ", " << to_string(exchange) << ", " << to_string(values);
        EXPECT_GT(*std::ranges::max_element(found.residuals[0]), 0);
      }
}

TEST(Replay, SaysThatABlockWasLost) {
  ReplayInput input = tiny_run({1, 1});
  input.compress.method = CompressMethod::block;
  EXPECT_LT(replayed(input).lost_relative.value(), 1e-6);
  input.sent = [](int iteration, ReplicaId replica, int part, ReplaySet& set) {
    if (iteration != 3 || replica != ReplicaId{1} || part != 2) return;
    const auto first =
        static_cast<std::ptrdiff_t>(std::ranges::max_element(set.numbers) - set.numbers.begin()) /
        16 * 16;
    std::fill_n(set.numbers.begin() + first, 16, 0.0F);
  };
  EXPECT_GT(replayed(input).lost_relative.value(), 1e-4);
}

TEST(Replay, WithoutFeedbackKeepsNothing) {
  ReplayInput input = tiny_run({1, 1});
  input.compress.method = CompressMethod::block;
  const Replayed with = replayed(input);
  input.compress.feedback = false;
  const Replayed without = replayed(input);
  EXPECT_EQ(without.lost_relative, std::nullopt);
  EXPECT_THAT(without.residuals, Each(Each(0)));
  EXPECT_EQ(without.loss[1], with.loss[1]) << "the first sets are the same";
  EXPECT_NE(without.weights, with.weights);
}

/// Weights of another update in one part alone change that iteration's loss, and no other's before.
TEST(Replay, TakesTheVersionOfEachPart) {
  ReplayInput input = tiny_run({1, 1});
  const Replayed fresh = replayed(input);
  input.version = [](int iteration, ReplicaId, int) { return iteration - 1; };
  EXPECT_EQ(replayed(input).weights, fresh.weights);
  for (const int stale_part : {0, 1, 2}) {
    input.version = [&](int iteration, ReplicaId replica, int part) {
      return iteration - 1 - (iteration == 3 && replica == ReplicaId{1} && part == stale_part);
    };
    const Replayed stale = replayed(input);
    EXPECT_EQ(stale.loss[2], fresh.loss[2]);
    EXPECT_NE(stale.loss[3], fresh.loss[3]) << stale_part;
  }
  input.version = [](int, ReplicaId, int) { return -1; };
  const Replayed first_weights = replayed(input);
  ReplayInput still = tiny_run({1, 1});
  still.step.learning_rate = 0;
  EXPECT_EQ(first_weights.loss, replayed(still).loss);
  EXPECT_NE(first_weights.weights, replayed(still).weights) << "updates are made all the same";
}

TEST(Replay, ReportsWeightsAfterEachUpdate) {
  ReplayInput input = tiny_run({1, 1});
  std::vector<std::vector<float>> seen;
  input.after = [&](int iteration, std::span<const float> weights) {
    EXPECT_EQ(iteration, static_cast<int>(seen.size()));
    seen.emplace_back(weights.begin(), weights.end());
  };
  const Replayed whole = replayed(input);
  ASSERT_EQ(seen.size(), 6U);
  EXPECT_EQ(seen.back(), whole.weights);
  input.after = nullptr;
  input.iterations = 3;
  EXPECT_EQ(replayed(input).weights, seen[2]);
}

TEST(Replay, OfOnePartDiffersFromThatOfThree) {
  ReplayInput input = tiny_run({1, 1});
  const Replayed dense = replayed(input);
  input.compress.method = CompressMethod::block;
  const Replayed chosen = replayed(input);
  input.parts = {{0, numbers_of_the_model()}};
  EXPECT_NE(replayed(input).weights, chosen.weights) << "each part has a choice of its own";
  input.compress.method = CompressMethod::none;
  EXPECT_EQ(replayed(input).weights, dense.weights);
}

/// A part's replicas may be divided over sites in a way of its own.
TEST(Replay, TakesTheSitesOfEachPart) {
  ReplayInput input = tiny_run({1, 1, 1});
  input.compress.method = CompressMethod::block;
  input.compress.exchange = SetExchange::sites;
  input.site_of_replica = {0, 0, 1};
  const Replayed all = replayed(input);
  for (training::ReplayPart& part : input.parts) part.sites = {3, 3, 5};
  EXPECT_EQ(replayed(input).weights, all.weights) << "other numbers in the same order";
  input.parts[1].sites = {0, 1, 1};
  const Replayed other = replayed(input);
  EXPECT_NE(other.weights, all.weights);
  const auto end = static_cast<std::ptrdiff_t>(input.parts[0].count);
  input.iterations = 1;
  const Replayed once = replayed(input);
  input.parts[1].sites.clear();
  const Replayed all_once = replayed(input);
  EXPECT_TRUE(
      std::equal(once.weights.begin(), once.weights.begin() + end, all_once.weights.begin()))
      << "of that part alone";
}

/// A pipeline that rounds nothing is the whole model, wherever it is cut.
TEST(Replay, RoundsWhatStagesSend) {
  ReplayInput input = tiny_run({2, 1});
  input.microbatches = 2;
  const Replayed whole = replayed(input);
  for (const std::vector<int>& after : {std::vector{1}, std::vector{2}, std::vector{1, 2}}) {
    input.cuts = {after};
    EXPECT_EQ(replayed(input).loss, whole.loss);
    EXPECT_EQ(replayed(input).weights, whole.weights);
  }
  input.cuts = {{1, 2}, {.format = ActivationFormat::bf16}};
  const Replayed brain = replayed(input);
  EXPECT_NE(brain.loss.front(), whole.loss.front());
  EXPECT_NEAR(brain.loss.back(), whole.loss.back(), 1e-2);
  input.cuts.travels.format = ActivationFormat::int8;
  const Replayed bytes = replayed(input);
  EXPECT_NE(bytes.loss.front(), brain.loss.front());
  EXPECT_NEAR(bytes.loss.back(), whole.loss.back(), 2e-2);
  input.cuts.after = {1};
  EXPECT_NE(replayed(input).loss.front(), bytes.loss.front()) << "each cut counts";
}

/// All numbers kept are bf16; of fewer, what is left out changes what comes later.
TEST(Replay, KeepsTheLargestOfWhatStagesSend) {
  ReplayInput input = tiny_run({2, 1});
  input.microbatches = 2;
  input.cuts = {{1, 2}, {.format = ActivationFormat::bf16}};
  const Replayed brain = replayed(input);
  input.cuts.travels = {ActivationFormat::topk, 1, ActivationFeedback::none};
  EXPECT_EQ(replayed(input).loss, brain.loss);
  EXPECT_EQ(replayed(input).weights, brain.weights);
  input.cuts.travels.keep = 0.5;
  const Replayed lost = replayed(input);
  EXPECT_NE(lost.loss.front(), brain.loss.front());
  for (const ActivationFeedback feedback :
       {ActivationFeedback::residual, ActivationFeedback::difference}) {
    input.cuts.travels.feedback = feedback;
    const Replayed fed = replayed(input);
    EXPECT_EQ(fed.loss.front(), lost.loss.front()) << "nothing is left over from before";
    EXPECT_NE(fed.loss.back(), lost.loss.back()) << to_string(feedback);
  }
}

TEST(Replay, RefusesWhatIsNoRun) {
  const auto refused = [](auto change, const char* why) {
    ReplayInput input = tiny_run({1, 1});
    change(input);
    EXPECT_THAT([&] { static_cast<void>(replayed(input)); }, ThrowsMessage<Error>(HasSubstr(why)));
  };
  refused([](ReplayInput& input) { input.site_of_replica = {0}; }, "2 batches and 1 sites");
  refused([](ReplayInput& input) { input.text = {}; }, "without a text");
  refused([](ReplayInput& input) { input.compress.keep = 0; }, "keep is 0");
  refused([](ReplayInput& input) { input.compress.block = 3; }, "block is 3");
  refused([](ReplayInput& input) { input.step.momentum = 2; }, "momentum is 2");
  refused([](ReplayInput& input) { input.cuts.after = {2, 2}; }, "cut after 2 and then 2");
  refused([](ReplayInput& input) { input.cuts.after = {4}; }, "cut after 0 and then 4");
  refused(
      [](ReplayInput& input) {
        input.cuts.after = {1};
        input.local.emplace();
      },
      "local steps of 2 stages");
  refused([](ReplayInput& input) { input.parts[1].first = 710; }, "the one before ends at 709");
  refused([](ReplayInput& input) { input.parts.pop_back(); }, "parts end at 1733");
  refused([](ReplayInput& input) { input.parts[1].sites = {0}; }, "a part has 1 sites");
  refused([](ReplayInput& input) { input.version = [](int i, ReplicaId, int) { return i; }; },
          "iteration 0 used the weights of update 0 (updates -1 to -1 are held)");
  refused(
      [](ReplayInput& input) {
        input.iterations = 20;
        input.version = [](int, ReplicaId, int) { return -1; };
      },
      "iteration 16 used the weights of update -1 (updates 0 to 15 are held)");
  refused([](ReplayInput& input) { input.step.learning_rate = 1e20F; }, "no finite number");
}

/// From an iteration on: what follows is what a run computes that was always so.
TEST(Replay, ChangesBatchesAndShareOnTheWay) {
  ReplayInput input = tiny_run({2, 1});
  input.compress.method = CompressMethod::threshold;
  input.compress.block = 4;
  const double targets = 3.0 * tiny_shape().sequence;
  const Replayed as_it_is = replayed(input);
  input.changes = {{0, {2, 1}, 0.1, targets}, {3, {2, 1}, 0.1, targets}};
  const Replayed unchanged = replayed(input);
  EXPECT_EQ(unchanged.weights, as_it_is.weights) << "the same is no change";
  EXPECT_EQ(unchanged.loss, as_it_is.loss);

  ReplayInput always = tiny_run({1, 3});
  always.compress = input.compress;
  always.compress.keep = 0.3;
  ReplayInput changed = always;
  changed.batches = {2, 1};
  changed.compress.keep = 0.1;
  changed.changes = {{0, {1, 3}, 0.3, 4.0 * tiny_shape().sequence}};
  EXPECT_EQ(replayed(changed).weights, replayed(always).weights);
  EXPECT_EQ(replayed(changed).loss, replayed(always).loss);

  changed.changes = {{2, {1}, 0.3, 8}};
  EXPECT_THAT([&] { (void)replayed(changed); }, ThrowsMessage<Error>(HasSubstr("iteration 2 on")));
}

}  // namespace
}  // namespace longhaul::testing
