#include "naive.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.hpp"

/// The naive gradients against central differences of the naive operations: no formula for a
/// gradient is taken on trust.
namespace longhaul::naive {

namespace {

Numbers random_numbers(std::size_t count, std::uint64_t seed) {
  Random random{seed};
  Numbers numbers(count);
  for (double& number : numbers) number = 2 * random.uniform() - 1;
  return numbers;
}

TEST(Naive, DifferencesOfASquare) {
  const Numbers slope =
      differences([](const Numbers& at) { return at[0] * at[0] + 3 * at[1]; }, {2, 7});
  EXPECT_NEAR(slope[0], 4, 1e-8);
  EXPECT_NEAR(slope[1], 3, 1e-8);
}

TEST(Naive, NormGradients) {
  const Numbers x = random_numbers(15, 1), weight = random_numbers(5, 2),
                dy = random_numbers(15, 3);
  const auto gradients = rms_norm_gradients(x, weight, dy, 5);
  const auto of_x = [&](const Numbers& at) { return dot(dy, rms_norm(at, weight, 5)); };
  const auto of_weight = [&](const Numbers& at) { return dot(dy, rms_norm(x, at, 5)); };
  EXPECT_LE(distance(gradients.dx, differences(of_x, x)), 1e-8);
  EXPECT_LE(distance(gradients.dweight, differences(of_weight, weight)), 1e-8);
}

TEST(Naive, AttentionGradients) {
  for (const nn::AttentionShape& shape :
       {nn::AttentionShape{1, 4, 1, 1, 2}, nn::AttentionShape{2, 5, 4, 2, 6},
        nn::AttentionShape{1, 3, 6, 1, 4}}) {
    const Numbers qkv = random_numbers(shape.tokens() * shape.width(), 4);
    const Numbers dout = random_numbers(attention(shape, qkv).out.size(), 5);
    const auto of = [&](const Numbers& at) { return dot(dout, attention(shape, at).out); };
    EXPECT_LE(distance(attention_gradient(shape, qkv, dout), differences(of, qkv)), 1e-8);
  }
}

TEST(Naive, InverseTurnsAreTheGradientOfTurns) {
  const nn::AttentionShape shape{2, 4, 4, 2, 6};
  const Numbers qkv = random_numbers(shape.tokens() * shape.width(), 6);
  const Numbers dy = random_numbers(qkv.size(), 7);
  const auto of = [&](const Numbers& at) {
    return dot(dy, rotary(shape, 100, nn::Direction::forward, at));
  };
  EXPECT_LE(distance(rotary(shape, 100, nn::Direction::inverse, dy), differences(of, qkv)), 1e-8);
}

/// The point of rotary embedding: products depend on the distance of two positions alone.
TEST(Naive, TurnedProductsDependOnTheDistance) {
  const nn::AttentionShape shape{1, 8, 1, 1, 6};
  const Numbers row = random_numbers(shape.width(), 8);
  Numbers qkv;
  for (int token = 0; token < 8; ++token) qkv.insert(qkv.end(), row.begin(), row.end());
  const Numbers turned = rotary(shape, 100, nn::Direction::forward, qkv);
  const auto product = [&](std::size_t query, std::size_t key) {
    double sum = 0;
    for (std::size_t i = 0; i < 6; ++i) sum += turned[query * 18 + i] * turned[key * 18 + 6 + i];
    return sum;
  };
  EXPECT_NEAR(product(3, 1), product(7, 5), 1e-12);
  EXPECT_GT(std::abs(product(3, 1) - product(3, 2)), 1e-3);
}

TEST(Naive, GatedUnitsGradient) {
  const Numbers both = random_numbers(20, 9), dy = random_numbers(10, 10);
  const auto of = [&](const Numbers& at) { return dot(dy, swiglu(at, 5)); };
  EXPECT_LE(distance(swiglu_gradient(both, dy, 5), differences(of, both)), 1e-8);
}

TEST(Naive, EmbeddingGradient) {
  const Tokens tokens{3, 1, 3, 0};
  const Numbers table = random_numbers(15, 11), dy = random_numbers(12, 12);
  const auto of = [&](const Numbers& at) { return dot(dy, embed(tokens, at, 3)); };
  EXPECT_LE(distance(embed_gradient(tokens, dy, 3, 5), differences(of, table)), 1e-8);
}

TEST(Naive, CrossEntropyGradient) {
  const Tokens targets{3, -1, 0};
  const Numbers logits = random_numbers(15, 13);
  const auto of = [&](const Numbers& at) { return cross_entropy(targets, 5, at).sum; };
  EXPECT_LE(distance(cross_entropy(targets, 5, logits).gradient, differences(of, logits)), 1e-8);
  EXPECT_NEAR(cross_entropy({2}, 4, {1, 1, 1, 1}).sum, std::log(4), 1e-12);
}

}  // namespace

}  // namespace longhaul::naive
