#include <gmock/gmock.h>

#include "chunk_suite.hpp"

/// The bytes that each block leaves in memory: the table of docs/layers.md, byte for byte.
namespace longhaul::nn {

namespace {

/// Sizes of docs/layers.md for one microbatch.
struct Sizes {
  std::size_t number;  ///< bytes of one of the working type
  std::size_t tokens, hidden, qkv, intermediate, heads, vocabulary;

  Sizes(const ModelShape& shape, NumberType type)
      : number{bytes_of(type)},
        tokens{shape.tokens()},
        hidden{static_cast<std::size_t>(shape.hidden)},
        qkv{static_cast<std::size_t>((shape.heads + 2 * shape.kv_heads) * shape.head_size())},
        intermediate{static_cast<std::size_t>(shape.intermediate)},
        heads{static_cast<std::size_t>(shape.heads)},
        vocabulary{static_cast<std::size_t>(shape.vocabulary)} {}
  [[nodiscard]] std::size_t boundary() const { return tokens * number * hidden; }
  [[nodiscard]] std::size_t integers() const { return 4 * tokens; }
  [[nodiscard]] std::size_t decoder_after_d() const {
    return tokens * number * (5 * hidden + qkv + 3 * intermediate);
  }
  [[nodiscard]] std::size_t decoder_after_f() const {
    return decoder_after_d() + 4 * tokens * (heads + 2);
  }
  [[nodiscard]] std::size_t head_after_f() const {
    return tokens * (number * (2 * hidden + vocabulary) + 4);
  }
  [[nodiscard]] std::size_t head_after_d() const { return tokens * number * (hidden + vocabulary); }
};

TEST_P(ChunkSuite, WeightsTakeTheirBytes) {
  const ModelShape shape = tiny_model(3);
  const auto model = whole(shape);
  std::size_t count = 0;
  for (const Parameter& parameter : model->parameters()) count += (parameter.count + 63) / 64 * 64;
  const std::size_t master = math().working_type() == NumberType::f32 ? 0 : 4;
  EXPECT_EQ(memory().held(), count * (bytes_of(math().working_type()) + 4 + master) + 8);
  EXPECT_EQ(model->all_weights().count, count);
  EXPECT_EQ(model->all_gradients().count, count);
  EXPECT_EQ(model->all_masters().count, count);
}

TEST_P(ChunkSuite, ADecoderLayerKeepsWhatTheTableSays) {
  const ModelShape shape = tiny_model(5);
  const Sizes sizes{shape, math().working_type()};
  const auto layers = chunk(shape, {1, 2});
  const std::size_t idle = memory().held();
  const auto held = [&] { return memory().held() - idle; };
  Buffer out = layers->forward(MicrobatchId{3}, {}, random(shape.boundary(), 1));
  EXPECT_EQ(held(), 2 * sizes.decoder_after_f() + sizes.boundary());
  out = {};
  EXPECT_EQ(held(), 2 * sizes.decoder_after_f());
  out = layers->forward(MicrobatchId{4}, {}, random(shape.boundary(), 2));
  out = {};
  EXPECT_EQ(held(), 4 * sizes.decoder_after_f());
  EXPECT_EQ(layers->in_flight(), 2);
  Buffer back = layers->backward_input(MicrobatchId{3}, {}, random(shape.boundary(), 3));
  EXPECT_EQ(held(), 2 * sizes.decoder_after_f() + 2 * sizes.decoder_after_d() + sizes.boundary());
  back = {};
  layers->backward_weight(MicrobatchId{3}, {0, 2});
  EXPECT_EQ(held(), 2 * sizes.decoder_after_f() + sizes.decoder_after_d());
  layers->backward_weight(MicrobatchId{3}, {1, 2});
  EXPECT_EQ(held(), 2 * sizes.decoder_after_f());
  EXPECT_EQ(layers->in_flight(), 1);
  back = layers->backward(MicrobatchId{4}, {}, random(shape.boundary(), 4));
  back = {};
  EXPECT_EQ(held(), 0U);
  EXPECT_EQ(layers->in_flight(), 0);
}

TEST_P(ChunkSuite, BothGradientsAtOnceKeepOneLayerAtATime) {
  ModelShape shape = tiny_model(5);
  shape.intermediate = 40;  // as models have it: wider than the rest
  const Sizes sizes{shape, math().working_type()};
  const auto layers = chunk(shape, {1, 3});
  const std::size_t idle = memory().held();
  static_cast<void>(layers->forward(MicrobatchId{0}, {}, random(shape.boundary(), 1)));
  memory().reset_peak();
  static_cast<void>(layers->backward(MicrobatchId{0}, {}, random(shape.boundary(), 2)));
  // While a layer's gate and up are in their gradient: output's gradient, gated's, the two halves'.
  const std::size_t beside =
      sizes.boundary() + sizes.tokens * sizes.number * 3 * sizes.intermediate;
  EXPECT_EQ(memory().peak() - idle, 3 * sizes.decoder_after_f() + beside);
}

TEST_P(ChunkSuite, TheEndsKeepWhatTheTableSays) {
  const ModelShape shape = tiny_model(5);
  const Sizes sizes{shape, math().working_type()};
  const auto first = chunk(shape, {0, 1}), last = chunk(shape, {4, 1});
  const std::size_t idle = memory().held();
  const auto held = [&] { return memory().held() - idle; };
  first->set_tokens(MicrobatchId{0}, tokens(shape, 0));
  Buffer passing = first->forward(MicrobatchId{0}, {}, {});
  EXPECT_EQ(held(), sizes.integers() + sizes.boundary());
  last->set_targets(MicrobatchId{0}, targets(shape, 0));
  EXPECT_FALSE(last->forward(MicrobatchId{0}, {}, std::move(passing)));
  EXPECT_EQ(held(), sizes.integers() + sizes.head_after_f());
  passing = last->backward_input(MicrobatchId{0}, {}, {});
  EXPECT_EQ(held(), sizes.integers() + sizes.head_after_d() + sizes.boundary());
  last->backward_weight(MicrobatchId{0}, {});
  EXPECT_EQ(held(), sizes.integers() + sizes.boundary());
  EXPECT_FALSE(first->backward_input(MicrobatchId{0}, {}, std::move(passing)));
  EXPECT_EQ(held(), sizes.integers() + sizes.boundary());
  first->backward_weight(MicrobatchId{0}, {});
  EXPECT_EQ(held(), 0U);
}

TEST_P(ChunkSuite, WithRecomputationOnlyTheInputIsKept) {
  const ModelShape shape = tiny_model(5);
  const Sizes sizes{shape, math().working_type()};
  const auto first = chunk(shape, {0, 3}, Recompute::on),
             last = chunk(shape, {3, 2}, Recompute::on);
  const std::size_t idle = memory().held();
  const auto held = [&] { return memory().held() - idle; };
  first->set_tokens(MicrobatchId{0}, tokens(shape, 0));
  last->set_targets(MicrobatchId{0}, targets(shape, 0));
  Buffer passing = first->forward(MicrobatchId{0}, {}, {});
  EXPECT_EQ(held(), 2 * sizes.integers() + sizes.boundary());
  EXPECT_FALSE(last->forward(MicrobatchId{0}, {}, std::move(passing)));
  EXPECT_EQ(held(), 2 * sizes.integers() + sizes.boundary()) << "the last chunk's input";
  last->recompute(MicrobatchId{0}, {});
  EXPECT_EQ(held(), sizes.integers() + sizes.decoder_after_f() + sizes.head_after_f());
  passing = last->backward(MicrobatchId{0}, {}, {});
  EXPECT_EQ(held(), sizes.integers() + sizes.boundary());
  first->recompute(MicrobatchId{0}, {});
  EXPECT_EQ(held(), sizes.integers() + sizes.boundary() + 2 * sizes.decoder_after_f());
  static_cast<void>(first->backward(MicrobatchId{0}, {}, std::move(passing)));
  EXPECT_EQ(held(), 0U);
}

TEST_P(ChunkSuite, MoreThanTheBudgetIsRefusedByName) {
  const ModelShape shape = tiny_model(5);
  std::size_t need = 0;
  {
    const auto layer = chunk(shape, {2, 1});
    static_cast<void>(layer->forward(MicrobatchId{5}, {}, random(shape.boundary(), 1)));
    need = memory().peak();
  }
  EXPECT_EQ(memory().held(), 0U);
  DeviceMemory enough{math(), need}, less{math(), need - 1};
  for (DeviceMemory* const budget : {&enough, &less}) {
    Chunk layer{math(), *budget, shape, {2, 1}, Recompute::off, 7};
    Buffer input = budget->take(shape.boundary(), "input");
    math().zero(input.view());
    if (budget == &enough) {
      EXPECT_TRUE(layer.forward(MicrobatchId{5}, {}, std::move(input)));
      EXPECT_EQ(enough.peak(), need);
      continue;
    }
    try {
      static_cast<void>(layer.forward(MicrobatchId{5}, {}, std::move(input)));
      FAIL() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::run_failed);
      const std::size_t bytes = shape.boundary() * bytes_of(math().working_type());
      EXPECT_THAT(error.what(),
                  ::testing::HasSubstr(fmt::format(
                      "F(microbatch 5), layer 2, output: {} B are more than is left", bytes)));
      EXPECT_THAT(error.what(), ::testing::HasSubstr(fmt::format("({} B held, budget {} B)",
                                                                 less.held(), need - 1)));
    }
  }
  EXPECT_EQ(less.held(), 0U);
}

TEST_P(ChunkSuite, MoreThanTheDeviceHasIsRefusedByName) {
  try {
    static_cast<void>(memory().take(std::size_t{1} << 50U, NumberType::f32, "W(chunk 1)"));
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::run_failed);
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("W(chunk 1): the device has no 4503599627370496 B "
                                     "left (0 B held by this rank, no budget)"));
  }
}

}  // namespace

}  // namespace longhaul::nn
