#pragma once

#include <map>
#include <string>

#include "naive.hpp"
#include "nn/layers/shape.hpp"

/// The model of docs/layers.md in double precision, forward only: gradients of anything are
/// differences of it.
namespace longhaul::naive {

using Weights = std::map<std::string, Numbers>;  ///< by the names of parameters

[[nodiscard]] AttentionShape attention_shape(const ModelShape& shape);
/// Layers [first, first + count) without the head; `input` where they hold no embedding.
[[nodiscard]] Numbers run_layers(const ModelShape& shape, const Weights& weights, LayerRange layers,
                                 const Tokens& tokens, Numbers input = {});
/// Sum over the tokens.
[[nodiscard]] double run_head(const ModelShape& shape, const Weights& weights,
                              const Tokens& targets, const Numbers& input);

}  // namespace longhaul::naive
