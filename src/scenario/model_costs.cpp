#include "scenario/model_costs.hpp"

#include <cmath>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::int64_t kBytesPerNumber = 2;  // bf16

double tokens(const Model& model) {
  return static_cast<double>(model.microbatch_size) * model.sequence_length;
}

/// Width of all keys (or values) of a token.
std::int64_t key_width(const Model& model) {
  return static_cast<std::int64_t>(model.hidden) * model.kv_heads / model.heads;
}

/// Maps that the second half of a layer begins with: up alone, or gate and up.
int maps_up(const Model& model) { return model.mlp == MlpKind::swiglu ? 2 : 1; }

/// Numbers that one layer keeps for the backward pass of one token: inputs of both norms, of the
/// QKV, output, gate/up and down maps; Q, K, V; gate and up. FlashAttention keeps no scores, nor
/// does selective recomputation; else 5 bytes each stay (arXiv 2205.05198, section 4.1: softmax,
/// dropout's mask and output).
double kept_per_token(const Model& model) {
  const double d = model.hidden;
  const double scores = model.keeps_scores() ? 2.5 * model.heads * model.sequence_length : 0;
  return 6 * d + 2 * static_cast<double>(key_width(model)) +
         (maps_up(model) + 1.0) * model.intermediate + scores;
}

/// Weights of the layers [first, first + count) of the model.
double stage_parameters(const Model& model, int first, int count) {
  double sum = static_cast<double>(count) * static_cast<double>(layer_parameters(model));
  if (model.vocabulary == 0) return sum;
  const double table = static_cast<double>(model.vocabulary) * model.hidden;
  const auto layer = static_cast<double>(layer_parameters(model));
  const double positions = model.positions == PositionKind::learned
                               ? static_cast<double>(model.sequence_length) * model.hidden
                               : 0;
  if (first == 0) sum += table + positions - layer;
  if (first + count == model.layers) sum += table - layer;
  return sum;
}

double fitting(double value) {
  constexpr double kLimit = 0x1p60;
  if (!(value < kLimit))
    fail("a cost of the model is {:g} ns or bytes (2^60 is the limit). Make the model smaller.",
         value);
  return value;
}

Duration nanoseconds(double seconds) { return Duration{std::llround(fitting(seconds * 1e9))}; }
Bytes bytes(double count) { return Bytes{std::llround(fitting(count))}; }

void add_times(Costs& costs, const Model& model, int layers) {
  const double rate = model.achieved_flops * model.tensor_parallel / layers;
  const double linear = linear_flops(model);
  const double attention = attention_flops(model);
  const Duration forward = nanoseconds((linear + attention) / rate);
  // Both inputs of each attention product need a gradient: twice the forward products.
  const double again = model.computes_scores_again() ? attention : 0;
  const Duration dgrad = nanoseconds((linear + again + 2 * attention) / rate);
  const Duration wgrad = nanoseconds(linear / rate);
  costs.forward.push_back(forward);
  costs.dgrad.push_back(dgrad);
  costs.wgrad.push_back(wgrad);
  costs.backward.push_back(dgrad + wgrad);
  costs.recompute.push_back(forward);
}

void add_measured(Costs& costs, const LayerTimes& layer, int layers) {
  costs.forward.push_back(layer.forward * layers);
  costs.backward.push_back(layer.backward * layers);
  costs.dgrad.push_back(layer.dgrad * layers);
  costs.wgrad.push_back(layer.wgrad * layers);
  costs.recompute.push_back(layer.recompute * layers);
}

}  // namespace

std::int64_t layer_parameters(const Model& model) {
  const std::int64_t d = model.hidden;
  const std::int64_t maps = maps_up(model);
  // Of the four maps, and of norms, which are counted where they have biases alone.
  const std::int64_t biases =
      model.biases ? 7 * d + 2 * key_width(model) + maps * model.intermediate : 0;
  return 2 * d * d + 2 * d * key_width(model) + (maps + 1) * d * model.intermediate + biases;
}

std::int64_t model_parameters(const Model& model) {
  return std::llround(stage_parameters(model, 0, model.layers));
}

double linear_flops(const Model& model) {
  return 2 * tokens(model) * static_cast<double>(layer_parameters(model));
}

double attention_flops(const Model& model) {
  // Two products (QK and PV) of 2 s^2 d each, halved because a token sees only those before it.
  return 2 * tokens(model) * model.sequence_length * model.hidden;
}

double training_flops(const Model& model) {
  return 3.0 * model.layers * (linear_flops(model) + attention_flops(model));
}

std::vector<int> layers_of_stages(const Model& model, int stages) {
  if (stages > model.layers)
    fail("{} stages share {} layers (a stage would be empty). Use at most {} stages.", stages,
         model.layers, model.layers);
  std::vector<int> layers(to_size(stages), model.layers / stages);
  for (int i = 0; i < model.layers % stages; ++i) ++layers[at(i)];
  return layers;
}

Bytes layer_activation(const Model& model, int layers) {
  return bytes(kBytesPerNumber * tokens(model) * kept_per_token(model) * layers);
}

Bytes layer_weights(const Model& model, int first, int count) {
  return bytes(kBytesPerNumber * stage_parameters(model, first, count));
}

Costs model_costs(const Model& model, int stages, const std::optional<LayerTimes>& measured) {
  return model_costs(model, layers_of_stages(model, stages), measured);
}

Costs model_costs(const Model& model, const std::vector<int>& layers_of_stages,
                  const std::optional<LayerTimes>& measured) {
  Costs costs;
  int first = 0;
  for (const int layers : layers_of_stages) {
    if (measured)
      add_measured(costs, *measured, layers);
    else
      add_times(costs, model, layers);
    costs.activation.push_back(layer_activation(model, layers));
    costs.message.push_back(bytes(kBytesPerNumber * tokens(model) * model.hidden));
    costs.weights.push_back(layer_weights(model, first, layers));
    first += layers;
  }
  return costs;
}

}  // namespace longhaul::scenario
