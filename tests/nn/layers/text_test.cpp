#include "nn/layers/text.hpp"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

namespace longhaul::nn {

namespace {

ModelShape reader(int vocabulary) {
  ModelShape shape;
  shape.batch = 3;
  shape.sequence = 400;
  shape.vocabulary = vocabulary;
  return shape;
}

TEST(SyntheticText, FollowsFromSeedIterationReplicaAndMicrobatch) {
  const SyntheticText text{reader(50), 3}, same{reader(50), 3}, other{reader(50), 4};
  const MicrobatchText first = text(1, ReplicaId{2}, MicrobatchId{3});
  EXPECT_EQ(first.tokens, same(1, ReplicaId{2}, MicrobatchId{3}).tokens);
  EXPECT_EQ(first.targets, same(1, ReplicaId{2}, MicrobatchId{3}).targets);
  EXPECT_NE(first.tokens, other(1, ReplicaId{2}, MicrobatchId{3}).tokens);
  EXPECT_NE(first.tokens, text(0, ReplicaId{2}, MicrobatchId{3}).tokens);
  EXPECT_NE(first.tokens, text(1, ReplicaId{0}, MicrobatchId{3}).tokens);
  EXPECT_NE(first.tokens, text(1, ReplicaId{2}, MicrobatchId{0}).tokens);
}

TEST(SyntheticText, TargetsAreTheNextTokens) {
  const ModelShape shape = reader(50);
  const MicrobatchText text = SyntheticText{shape, 1}(0, ReplicaId{0}, MicrobatchId{0});
  ASSERT_EQ(text.tokens.size(), shape.tokens());
  ASSERT_EQ(text.targets.size(), shape.tokens());
  for (std::size_t i = 0; i + 1 < text.tokens.size(); ++i) {
    if (i % 400 != 399) {
      EXPECT_EQ(text.targets[i], text.tokens[i + 1]) << i;
    }
  }
}

TEST(SyntheticText, TokensAreOfTheVocabulary) {
  for (const int vocabulary : {1, 2, 7, 128'256}) {
    const MicrobatchText text =
        SyntheticText{reader(vocabulary), 1}(0, ReplicaId{0}, MicrobatchId{0});
    for (const std::int32_t token : text.targets) {
      EXPECT_GE(token, 0);
      EXPECT_LT(token, vocabulary);
    }
  }
}

/// Mean loss of who counted what follows `length` tokens, on what was counted.
double counted_entropy(const SyntheticText& text, int length) {
  std::map<std::vector<std::int32_t>, std::map<std::int32_t, double>> followers;
  for (int microbatch = 0; microbatch < 300; ++microbatch) {
    const MicrobatchText piece = text(0, ReplicaId{0}, MicrobatchId{microbatch});
    for (std::size_t i = 0; i < piece.tokens.size(); ++i) {
      if (i % 400 < 2) continue;
      std::vector<std::int32_t> before;
      for (int back = 0; back < length; ++back) {
        before.push_back(piece.tokens[i - static_cast<std::size_t>(back)]);
      }
      ++followers[before][piece.targets[i]];
    }
  }
  double loss = 0, all = 0;
  for (const auto& [before, counts] : followers) {
    double sum = 0;
    for (const auto& [token, count] : counts) sum += count;
    for (const auto& [token, count] : counts) loss -= count * std::log(count / sum);
    all += sum;
  }
  return loss / all;
}

/// Counted over 360,000 tokens: what is to be learned is in the last two, and as much as stated.
TEST(SyntheticText, TwoTokensTellWhatComes) {
  const SyntheticText text{reader(16), 5};
  const double one = counted_entropy(text, 1), two = counted_entropy(text, 2);
  EXPECT_GT(counted_entropy(text, 0), one + 0.3);
  EXPECT_GT(one, two + 0.2);
  // Where both rules name one token the chain is easier than stated: one context in sixteen.
  EXPECT_LE(two, text.entropy() + 0.02);
  EXPECT_GE(two, text.entropy() * (1 - 2.0 / 16));
}

}  // namespace

}  // namespace longhaul::nn
