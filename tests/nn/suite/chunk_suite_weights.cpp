#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "chunk_suite.hpp"

namespace longhaul::nn {

namespace {

using naive::Numbers;

ModelShape wide_model() {
  ModelShape shape = tiny_model(10);
  shape.hidden = 64;
  shape.intermediate = 96;
  shape.vocabulary = 200;
  return shape;
}

TEST_P(ChunkSuite, WeightsFollowFromSeedAndNameAlone) {
  const ModelShape shape = wide_model();
  const naive::Weights all = weights(*whole(shape));
  for (const LayerRange layers : {LayerRange{0, 1}, LayerRange{3, 4}, LayerRange{8, 2}}) {
    const auto part = chunk(shape, layers);
    EXPECT_FALSE(part->parameters().empty());
    for (const auto& [name, numbers] : weights(*part)) EXPECT_EQ(numbers, all.at(name)) << name;
  }
  const auto other = chunk(shape, {3, 1}, Recompute::off, 8);
  const Numbers mine = read(other->parameters()[1].weights);
  EXPECT_NE(mine, all.at("layer 3 attention.qkv"));
  EXPECT_NE(all.at("layer 4 attention.qkv"), all.at("layer 3 attention.qkv"));
}

TEST_P(ChunkSuite, WeightsBeginAsLarge) {
  const naive::Weights all = weights(*whole(wide_model()));
  EXPECT_EQ(all.size(), 1 + 8 * 6 + 2U);
  for (const auto& [name, numbers] : all) {
    SCOPED_TRACE(name);
    const double square = naive::dot(numbers, numbers) / static_cast<double>(numbers.size());
    if (name.ends_with("norm")) {
      EXPECT_EQ(numbers, Numbers(numbers.size(), 1.0));
      continue;
    }
    // Eight decoder layers: what joins the residual is a quarter of the rest. Five standard errors
    // of a uniform number's square in 4,096 draws or more.
    const bool residual = name.ends_with("attention.output") || name.ends_with("feedforward.down");
    EXPECT_NEAR(std::sqrt(square), residual ? 0.005 : 0.02, 0.02 * 0.0375);
  }
}

TEST_P(ChunkSuite, GapsBetweenParametersAreZero) {
  const auto model = whole(tiny_model(3));
  for (const ArrayView all : {model->all_weights(), model->all_masters(), model->all_gradients()}) {
    Numbers numbers = read(all);
    for (const Parameter& parameter : model->parameters()) {
      const ArrayView mine = all.data == model->all_weights().data   ? parameter.weights
                             : all.data == model->all_masters().data ? parameter.master
                                                                     : parameter.gradient;
      const auto first = static_cast<std::size_t>(mine.data - all.data) / bytes_of(all.type);
      EXPECT_EQ(first % 64, 0U);
      std::fill_n(numbers.begin() + static_cast<std::ptrdiff_t>(first), parameter.count, 0.0);
    }
    EXPECT_EQ(numbers, Numbers(all.count));
  }
}

TEST_P(ChunkSuite, EndsAreWhereTheLayersAre) {
  const ModelShape shape = tiny_model(4);
  for (const auto& [layers, embedding, head] : {std::tuple{LayerRange{0, 1}, true, false},
                                                {LayerRange{1, 2}, false, false},
                                                {LayerRange{2, 2}, false, true},
                                                {LayerRange{0, 4}, true, true}}) {
    const auto part = chunk(shape, layers);
    EXPECT_EQ(part->holds_embedding(), embedding);
    EXPECT_EQ(part->holds_head(), head);
  }
}

TEST_P(ChunkSuite, ShapesThatDoNotFitAreRefused) {
  const auto refusal = [&](const ModelShape& shape, LayerRange layers) -> std::string {
    try {
      static_cast<void>(chunk(shape, layers));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input);
      return error.what();
    }
    return {};
  };
  const ModelShape good = tiny_model(4);
  EXPECT_EQ(refusal(good, {0, 4}), "");
  EXPECT_THAT(refusal(good, {2, 0}), ::testing::HasSubstr("a chunk holds 0 layers"));
  EXPECT_THAT(refusal(good, {2, 3}), ::testing::HasSubstr("layers 2 to 4 (the model has 0 to 3)"));
  EXPECT_THAT(refusal(good, {-1, 3}), ::testing::HasSubstr("layers -1 to 1"));
  ModelShape bad = good;
  bad.layers = 1;
  EXPECT_THAT(refusal(bad, {0, 1}), ::testing::HasSubstr("1 layers"));
  bad = good;
  bad.heads = 5;
  EXPECT_THAT(refusal(bad, {0, 1}), ::testing::HasSubstr("5 heads share a hidden size of 16"));
  bad = good;
  bad.heads = bad.kv_heads = 16;
  EXPECT_THAT(refusal(bad, {0, 1}), ::testing::HasSubstr("even number"));
  bad = good;
  bad.kv_heads = 3;
  EXPECT_THAT(refusal(bad, {0, 1}), ::testing::HasSubstr("4 heads share 3 key and value heads"));
  bad = good;
  bad.vocabulary = 0;
  EXPECT_THAT(refusal(bad, {0, 1}), ::testing::HasSubstr("vocabulary is 0"));
}

}  // namespace

}  // namespace longhaul::nn
