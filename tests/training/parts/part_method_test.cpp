#include "training/parts/part_method.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "compress/sparse_set.hpp"
#include "compress/wire/wire.hpp"

namespace longhaul::training {
namespace {

using ::testing::ElementsAre;

std::vector<float> some_numbers(std::size_t count, std::uint64_t seed) {
  Random random{seed};
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random.uniform() - 0.5);
  return numbers;
}

GradientCompression top(double keep, int block) {
  GradientCompression compress;
  compress.keep = keep;
  compress.block = block;
  compress.share = KeptShare::each;
  return compress;
}

StepSettings sgd(float rate) {
  StepSettings step;
  step.optimizer.rule = compress::OptimizerRule::sgd;
  step.learning_rate = rate;
  return step;
}

/// The set that it sends, as a receiver decodes it.
compress::SparseSet sent(PartMethod& method, int iteration, std::span<const float> gradient) {
  return compress::decode(method.own_set(iteration, gradient), {.source = "here"});
}

TEST(PartMethods, SendTheLargestBlocksAndKeepTheRest) {
  const auto method = make_part_method(top(0.5, 2), {8}, sgd(1));
  const std::vector<float> gradient{3, -1, 0.5F, 0.5F, -2, 2, 0, 1};
  EXPECT_THAT(sent(*method, 0, gradient).blocks, ElementsAre(0, 2));
  EXPECT_THAT(method->residual(), ElementsAre(0, 0, 0.5F, 0.5F, 0, 0, 0, 1));
}

TEST(PartMethods, SendWhatWaitedWhenItsTurnComes) {
  GradientCompression compress = top(0.5, 1);
  compress.method = CompressMethod::topk;
  const auto method = make_part_method(compress, {2}, sgd(1));
  const std::vector<float> gradient{1, 0.6F};
  std::vector<std::pair<std::uint32_t, float>> all;
  for (int i = 0; i < 4; ++i) {
    const compress::SparseSet set = sent(*method, i, gradient);
    all.emplace_back(set.blocks.front(), set.values.front());
  }
  EXPECT_THAT(all, ElementsAre(std::pair{0U, 1.0F}, std::pair{1U, 1.2F}, std::pair{0U, 2.0F},
                               std::pair{1U, 1.2F}));
}

/// A share from an iteration on, told ahead; one that comes later is no larger than was said.
TEST(PartMethods, KeepAnotherShareFromAnIterationOn) {
  const std::vector<float> gradient = some_numbers(1000, 3);
  GradientCompression compress = top(0.02, 1);
  compress.share = KeptShare::split;
  const auto method = make_part_method(compress, {1000, 2, 1, 0}, sgd(1));
  const std::size_t largest = method->largest_set();
  method->keep_from(2, 0.1);
  method->keep_from(3, 0.002);
  std::vector<std::size_t> kept;
  for (int i = 0; i < 5; ++i) {
    const auto payload = method->own_set(i, gradient);
    EXPECT_LE(payload.size(), method->largest_set());
    kept.push_back(compress::decode(payload, {.source = "here"}).blocks.size());
  }
  EXPECT_THAT(kept, ElementsAre(10, 10, 50, 1, 1)) << "a half each";
  EXPECT_GT(method->largest_set(), largest);
  EXPECT_THROW(make_part_method({.method = CompressMethod::none}, {8}, sgd(1))->keep_from(1, 0.5),
               Error);
}

/// Payloads of members as the step takes them, in order.
std::vector<SetPayload> as_sets(const std::vector<std::vector<std::byte>>& payloads) {
  std::vector<SetPayload> sets;
  for (const auto& payload : payloads) sets.push_back({"a member", payload});
  return sets;
}

/// One step of `members` members with equal weights: those of the first.
std::vector<float> weights_after(const GradientCompression& compress, int members, int steps) {
  const PartPlace place{1000, members, 1, 0};
  std::vector<std::unique_ptr<PartMethod>> methods;
  for (int m = 0; m < members; ++m)
    methods.push_back(make_part_method(compress, place, StepSettings{}));
  std::vector<float> weights = some_numbers(1000, 1);
  for (int i = 0; i < steps; ++i) {
    std::vector<std::vector<std::byte>> payloads;
    for (int m = 0; m < members; ++m)
      payloads.push_back(methods[static_cast<std::size_t>(m)]->own_set(
          i, some_numbers(1000, static_cast<std::uint64_t>(100 * i + m))));
    methods.front()->merge(i, as_sets(payloads));
    methods.front()->step(i, weights);
  }
  methods.front()->finish();
  return weights;
}

TEST(PartMethods, ThatKeepAllAreDenseToTheBit) {
  GradientCompression none;
  none.method = CompressMethod::none;
  const std::vector<float> dense = weights_after(none, 3, 5);
  for (const CompressMethod method : {CompressMethod::block, CompressMethod::threshold,
                                      CompressMethod::topk, CompressMethod::randomk}) {
    GradientCompression all = top(1, 16);
    all.method = method;
    EXPECT_EQ(weights_after(all, 3, 5), dense) << to_string(method);
  }
}

/// Two members of one site, the first of which chooses for it, alone in the world.
struct Site {
  explicit Site(const GradientCompression& compress, int staleness)
      : chooser{make_part_method(compress, {64, 2, 1, staleness}, sgd(1))},
        other{make_part_method(compress, {64, 2, 1, staleness}, sgd(1))} {}

  void play(int iteration) {
    const auto gradient = [&](int member) {
      std::vector<float> numbers =
          some_numbers(64, static_cast<std::uint64_t>(2 * iteration + member));
      for (std::size_t i = 0; i < numbers.size(); ++i) sum[i] += static_cast<double>(numbers[i]);
      return numbers;
    };
    const std::vector<std::vector<std::byte>> sets{chooser->own_set(iteration, gradient(0)),
                                                   other->own_set(iteration, gradient(1))};
    const std::vector<std::byte> chosen = chooser->site_set(iteration, as_sets(sets));
    const std::vector<std::vector<std::byte>> all{chosen};
    for (const auto& each : {chooser.get(), other.get()}) {
      each->merge(iteration, as_sets(all));
      each->step(iteration, iteration % 2 == 0 ? weights : weights_of_other);
    }
  }
  std::unique_ptr<PartMethod> chooser, other;
  std::vector<double> sum = std::vector<double>(64);
  std::vector<float> weights = std::vector<float>(64), weights_of_other = weights;
};

TEST(PartMethods, LoseNothingWhereASiteChooses) {
  for (const SetValues values : every<SetValues>())
    for (const int staleness : {0, 1}) {
      GradientCompression compress = top(0.25, 4);
      compress.values = values;
      compress.exchange = SetExchange::sites;
      Site site{compress, staleness};
      for (int i = 0; i < 20; ++i) site.play(i);
      site.chooser->finish();
      site.other->finish();
      double waits = 0;
      for (std::size_t i = 0; i < 64; ++i) {
        const double left = static_cast<double>(site.chooser->residual()[i]) +
                            static_cast<double>(site.other->residual()[i]);
        waits += std::fabs(left);
        EXPECT_NEAR(site.chooser->sums_seen()[i] + left, site.sum[i], 1e-5)
            << to_string(values) << ", stale " << staleness << ", number " << i;
      }
      EXPECT_GT(waits, 1) << "something was left to wait";
    }
}

TEST(PartMethods, FitTheirRoom) {
  for (const CompressMethod method : every<CompressMethod>())
    for (const SetIndex index : every<SetIndex>())
      for (const SetValues values : every<SetValues>())
        for (const double keep : {0.001, 0.3, 1.0}) {
          GradientCompression compress = top(keep, method == CompressMethod::topk ? 1 : 4);
          compress.method = method;
          compress.index = index;
          compress.values = values;
          const auto one = make_part_method(compress, {1003}, StepSettings{});
          EXPECT_LE(one->own_set(0, some_numbers(1003, 5)).size(), one->largest_set())
              << to_string(method) << " " << to_string(index) << " " << to_string(values);
        }
}

TEST(PartMethods, RefuseWhatCannotBe) {
  GradientCompression compress = top(0.1, 4);
  compress.method = CompressMethod::randomk;
  compress.exchange = SetExchange::sites;
  EXPECT_THROW((void)make_part_method(compress, {64, 2, 2, 0}, StepSettings{}), Error);
  const auto none = make_part_method(top(0.1, 4), {4}, StepSettings{});
  const std::vector<float> bad{0, 0, INFINITY, 0};
  EXPECT_THROW((void)none->own_set(0, bad), compress::NotFinite);
}

/// At a validation weights are those of the dense optimizer fed the same sums, with zeros where
/// they have nothing; the run goes on as if no one had looked.
TEST(PartMethods, CatchUpWithTheDenseOptimizerFedZeros) {
  constexpr std::size_t kCount = 320;
  for (const compress::OptimizerRule rule :
       {compress::OptimizerRule::momentum, compress::OptimizerRule::nesterov,
        compress::OptimizerRule::adamw}) {
    StepSettings step;
    step.learning_rate = 0.01F;
    step.optimizer.rule = rule;
    step.optimizer.lazy = compress::LazyUpdate::exact;
    const auto method = make_part_method(top(0.05, 4), {kCount}, step);
    const auto unseen = make_part_method(top(0.05, 4), {kCount}, step);
    std::vector<float> weights = some_numbers(kCount, 1), others = weights, dense = weights;
    compress::OptimizerState state = compress::fresh_state(step.optimizer, kCount, 1);
    double farthest = 0;
    for (int i = 0; i < 30; ++i) {
      const std::vector<float> gradient = some_numbers(kCount, static_cast<std::uint64_t>(i + 2));
      const std::vector<std::byte> set = method->own_set(i, gradient);
      const SetPayload sets[] = {{"here", set}};
      method->merge(i, sets);
      method->step(i, weights);
      (void)unseen->own_set(i, gradient);
      unseen->merge(i, sets);
      unseen->step(i, others);
      std::vector<float> sum(kCount);
      compress::add_to(sum, compress::decode(set, {.source = "here"}));
      compress::dense_step(step.optimizer, i + 1, step.learning_rate, dense, sum, state);
      std::vector<float> looked_at = weights;
      method->catch_up()(looked_at);
      for (std::size_t k = 0; k < kCount; ++k) {
        EXPECT_NEAR(looked_at[k], dense[k], 1e-6) << k << " after " << i;
        farthest = std::max(farthest, static_cast<double>(std::fabs(weights[k] - dense[k])));
      }
      ASSERT_EQ(weights, others) << i;
    }
    EXPECT_GT(farthest, 1e-3) << "as they are they lag behind";
  }
}

}  // namespace
}  // namespace longhaul::training
