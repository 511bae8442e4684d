#include "naive_model.hpp"

namespace longhaul::naive {

namespace {

Numbers linear(const Numbers& x, const Numbers& weights, int in) {
  const int rows = static_cast<int>(x.size()) / in, out = static_cast<int>(weights.size()) / in;
  return gemm({rows, out, in, false, true, false}, x, weights);
}

void add(Numbers& to, const Numbers& what) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += what[i];
}

Numbers run_decoder(const nn::ModelShape& shape, const Weights& weights, int index, Numbers x) {
  const std::string layer = "layer " + std::to_string(index) + " ";
  const auto of = [&](const char* name) -> const Numbers& { return weights.at(layer + name); };
  const nn::AttentionShape heads = attention_shape(shape);
  const Numbers normed = rms_norm(x, of("attention.norm"), shape.hidden);
  const Numbers turned = rotary(heads, shape.rotary_theta, nn::Direction::forward,
                                linear(normed, of("attention.qkv"), shape.hidden));
  add(x, linear(attention(heads, turned).out, of("attention.output"), shape.hidden));
  const Numbers again = rms_norm(x, of("feedforward.norm"), shape.hidden);
  const Numbers gated =
      swiglu(linear(again, of("feedforward.gate_up"), shape.hidden), shape.intermediate);
  add(x, linear(gated, of("feedforward.down"), shape.intermediate));
  return x;
}

}  // namespace

nn::AttentionShape attention_shape(const nn::ModelShape& shape) {
  return {shape.batch, shape.sequence, shape.heads, shape.kv_heads, shape.hidden / shape.heads};
}

Numbers run_layers(const nn::ModelShape& shape, const Weights& weights, nn::LayerRange layers,
                   const Tokens& tokens, Numbers input) {
  for (int i = layers.first; i < layers.first + layers.count; ++i) {
    input = i == 0 ? embed(tokens, weights.at("embedding.table"), shape.hidden)
                   : run_decoder(shape, weights, i, std::move(input));
  }
  return input;
}

double run_head(const nn::ModelShape& shape, const Weights& weights, const Tokens& targets,
                const Numbers& input) {
  const Numbers normed = rms_norm(input, weights.at("head.norm"), shape.hidden);
  return cross_entropy(targets, shape.vocabulary,
                       linear(normed, weights.at("head.output"), shape.hidden))
      .sum;
}

}  // namespace longhaul::naive
