#pragma once

#include <cstdint>
#include <vector>

#include "scenario/scenario.hpp"

namespace longhaul::scenario {

/// The operators of a model, layer by layer in forward order. The first layer is the embedding, the
/// last the output head, where there are two or more:
///  - embedding: "embedding";
///  - layer: "attention_norm", "qkv", "attention", "output", "feedforward_norm", "gate_up",
///    "swiglu", "down" (of a model with GELU "up" and "gelu" instead of "gate_up" and "swiglu");
///  - head: "head_norm", "head", "loss".
/// Of Model::decoders_alone all are layers. Times by FLOPs over the achieved rate or bytes over the
/// memory's, whichever is longer; without a vocabulary embedding and head are one operator that
/// takes what a layer takes, as its weights do. The formulas stand in docs/scenario.md,
/// "Operators".
[[nodiscard]] std::vector<Operator> model_operators(const Model& model);

/// Times and weights of `stages` devices that hold these operators: `count[s]` of them, in order.
/// Backward is dgrad and wgrad; sizes of activations and messages are left out.
[[nodiscard]] Costs operator_costs(const std::vector<Operator>& operators,
                                   const std::vector<int>& count);

/// How many operators each of `parts` holds: `count` / parts, and one more for the first
/// (count mod parts).
[[nodiscard]] std::vector<int> evenly(int count, int parts);

/// How many operators each stage has whose layers are these.
[[nodiscard]] std::vector<int> operators_of_layers(const std::vector<Operator>& operators,
                                                   const std::vector<int>& layers_of_stages);

/// Of a scenario that knows its operators: how many each stage has.
[[nodiscard]] std::vector<int> operators_of_stages(const Scenario& scenario);

/// The scenario whose operators are those that compute: blocks without what tensor ranks wait for
/// each other. The same where it has no collectives among its operators.
[[nodiscard]] Scenario without_collectives(const Scenario& scenario);

/// Product widths of a layer, in numbers.
struct LayerWidths {
  int hidden = 0;
  int qkv = 0;  ///< queries, keys and values of a token together
  int intermediate = 0;
  int vocabulary = 0;
  std::int64_t tokens = 0;  ///< of a microbatch
};
[[nodiscard]] LayerWidths layer_widths(const Model& model);

}  // namespace longhaul::scenario
