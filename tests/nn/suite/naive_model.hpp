#pragma once

#include <map>
#include <string>

#include "naive.hpp"
#include "nn/layers/shape.hpp"

/// The model of docs/layers.md in double precision, forward only: gradients of anything are
/// differences of it.
namespace longhaul::naive {

using Weights = std::map<std::string, Numbers>;  ///< by the names of parameters

[[nodiscard]] nn::AttentionShape attention_shape(const nn::ModelShape& shape);
/// Layers [first, first + count) without the head; `input` where they hold no embedding.
[[nodiscard]] Numbers run_layers(const nn::ModelShape& shape, const Weights& weights,
                                 nn::LayerRange layers, const Tokens& tokens, Numbers input = {});
/// Sum over the tokens.
[[nodiscard]] double run_head(const nn::ModelShape& shape, const Weights& weights,
                              const Tokens& targets, const Numbers& input);

}  // namespace longhaul::naive
