#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scenario/scenario.hpp"

namespace longhaul::scenario {

/// Measured block times of one layer and microbatch, on all GPUs of its device together.
struct LayerTimes {
  Duration forward;
  Duration backward;
  Duration dgrad;
  Duration wgrad;
  Duration recompute;
};

// The formulas stand in docs/scenario.md, "Costs of a model".

/// Weights of one transformer layer: attention with grouped keys and values, MLP, biases if any.
[[nodiscard]] std::int64_t layer_parameters(const Model& model);
/// Sums over all layers; embedding and head count as layers where the vocabulary is unknown (0).
[[nodiscard]] std::int64_t model_parameters(const Model& model);
/// FLOPs of one layer's linear maps on one microbatch, once (forward, dgrad and wgrad are equal).
[[nodiscard]] double linear_flops(const Model& model);
/// FLOPs of one layer's attention products, forward; causal, so half of the square.
[[nodiscard]] double attention_flops(const Model& model);
/// FLOPs of forward, dgrad and wgrad of one microbatch through the whole model, without
/// recomputation: what MFU counts.
[[nodiscard]] double training_flops(const Model& model);

/// Layers of each stage: layers / stages, and one more for the first (layers mod stages).
[[nodiscard]] std::vector<int> layers_of_stages(const Model& model, int stages);

/// Memory that one microbatch keeps of `layers` layers from F to the end of the backward pass.
[[nodiscard]] Bytes layer_activation(const Model& model, int layers);
/// Weights in bf16 of `count` layers from layer `first` on.
[[nodiscard]] Bytes layer_weights(const Model& model, int first, int count);

/// Costs of every stage: times by FLOPs over the achieved rate, or `measured` times the layers.
/// Throws Error (without a place) where a stage would be empty or a number does not fit.
[[nodiscard]] Costs model_costs(const Model& model, const std::vector<int>& layers_of_stages,
                                const std::optional<LayerTimes>& measured = std::nullopt);
/// The same with layers_of_stages().
[[nodiscard]] Costs model_costs(const Model& model, int stages,
                                const std::optional<LayerTimes>& measured = std::nullopt);

/// Divides `layers` equal layers over stages of the relative `speeds`, at least one and at most
/// `most[i]` each, so that the slowest stage is as fast as possible (CrossPipe 8.1: faster devices
/// get more layers), then the next slowest; of equal stages the first get more, as in
/// layers_of_stages(). nullopt where so many layers do not fit or a stage would be empty.
[[nodiscard]] std::optional<std::vector<int>> balanced_layers(int layers,
                                                              const std::vector<double>& speeds,
                                                              const std::vector<int>& most);

}  // namespace longhaul::scenario
