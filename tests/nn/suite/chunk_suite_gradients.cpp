#include <algorithm>

#include "chunk_suite.hpp"

/// Loss and gradients of layers against differences of the naive model.
namespace longhaul::nn {

namespace {

using naive::Numbers;

TEST_P(ChunkSuite, LossAndEveryGradientOfTheModel) {
  const ModelShape shape = tiny_model(3);
  const auto model = whole(shape);
  spread_weights(*model);
  model->set_loss_scale(0.25F);
  for (const MicrobatchId microbatch : {MicrobatchId{4}, MicrobatchId{9}}) {
    model->set_tokens(microbatch, tokens(shape, microbatch));
    model->set_targets(microbatch, targets(shape, microbatch));
    EXPECT_FALSE(model->forward(microbatch, {}, {}));
    EXPECT_FALSE(model->backward_input(microbatch, {}, {}));
    model->backward_weight(microbatch, {});
  }
  naive::Weights exact = weights(*model);
  const auto loss = [&] {
    double sum = 0;
    for (const MicrobatchId microbatch : {MicrobatchId{4}, MicrobatchId{9}}) {
      const Numbers out = naive::run_layers(shape, exact, {0, 2}, tokens(shape, microbatch));
      sum += naive::run_head(shape, exact, targets(shape, microbatch), out);
    }
    return 0.25 * sum;
  };
  EXPECT_NEAR(model->loss(), loss(), tolerance() * loss());
  for (const auto& [name, gradient] : gradients(*model)) {
    const Numbers slope = naive::differences(
        [&, changed = &exact.at(name)](const Numbers& at) {
          *changed = at;
          return loss();
        },
        exact.at(name));
    exact = weights(*model);
    EXPECT_LE(naive::distance(gradient, slope), tolerance()) << name;
  }
}

/// A decoder layer alone: its gradients and that of its input, from a gradient of its output.
TEST_P(ChunkSuite, EveryGradientOfADecoderLayer) {
  for (const auto& [heads, kv_heads] : {std::pair{4, 2}, {2, 2}, {8, 1}}) {
    SCOPED_TRACE(::testing::Message() << heads << "/" << kv_heads << " heads");
    ModelShape shape = tiny_model(5);
    shape.heads = heads;
    shape.kv_heads = kv_heads;
    const LayerRange layers{2, 1};
    const auto layer = chunk(shape, layers);
    spread_weights(*layer);
    Buffer input = random(shape.boundary(), 1), dout = random(shape.boundary(), 2);
    const Numbers at_input = read(input.view()), direction = read(dout.view());
    naive::Weights exact = weights(*layer);
    const auto run = [&](const Numbers& in) {
      return naive::run_layers(shape, exact, layers, {}, in);
    };
    const Buffer out = layer->forward(MicrobatchId{0}, {}, std::move(input));
    EXPECT_LE(naive::distance(read(out.view()), run(at_input)), tolerance());
    const Buffer din = layer->backward_input(MicrobatchId{0}, {}, std::move(dout));
    const Numbers slope = naive::differences(
        [&](const Numbers& at) { return naive::dot(direction, run(at)); }, at_input);
    EXPECT_LE(naive::distance(read(din.view()), slope), tolerance());
    layer->backward_weight(MicrobatchId{0}, {});
    for (const auto& [name, gradient] : gradients(*layer)) {
      const Numbers weight_slope = naive::differences(
          [&, changed = &exact.at(name)](const Numbers& at) {
            *changed = at;
            return naive::dot(direction, run(at_input));
          },
          exact.at(name));
      exact = weights(*layer);
      EXPECT_LE(naive::distance(gradient, weight_slope), tolerance()) << name;
    }
  }
}

TEST_P(ChunkSuite, LaterTokensChangeNothingBefore) {
  const ModelShape shape = tiny_model(5);
  const auto layers = chunk(shape, {0, 4});
  spread_weights(*layers);
  naive::Tokens changed = tokens(shape, 0);
  const std::size_t at = 3;  // of the first sequence
  changed[at] = (changed[at] + 1) % shape.vocabulary;
  layers->set_tokens(MicrobatchId{0}, tokens(shape, 0));
  layers->set_tokens(MicrobatchId{1}, changed);
  const Numbers before = read(layers->forward(MicrobatchId{0}, {}, {}).view());
  const Numbers after = read(layers->forward(MicrobatchId{1}, {}, {}).view());
  const auto width = static_cast<std::size_t>(shape.hidden);
  for (std::size_t token = 0; token < shape.tokens(); ++token) {
    const bool same = std::equal(before.begin() + static_cast<std::ptrdiff_t>(token * width),
                                 before.begin() + static_cast<std::ptrdiff_t>((token + 1) * width),
                                 after.begin() + static_cast<std::ptrdiff_t>(token * width));
    EXPECT_EQ(same, token < at || token >= 5) << "token " << token;
  }
}

}  // namespace

}  // namespace longhaul::nn
