#pragma once

#include <cstddef>

#include "base/index.hpp"

namespace longhaul::nn {

/// The shape of a chunk's tensors: the model of a scenario (a Llama-style decoder) and the
/// microbatch that runs through it.
struct ModelShape {
  int batch = 1;     ///< sequences of a microbatch
  int sequence = 0;  ///< tokens of a sequence
  int hidden = 0;
  int intermediate = 0;
  int heads = 0;
  int kv_heads = 0;
  int vocabulary = 0;
  int layers = 0;  ///< of the whole model; layer 0 is the embedding, the last one the output head
  float rotary_theta = 500'000;

  [[nodiscard]] std::size_t tokens() const { return to_size(batch) * to_size(sequence); }
  [[nodiscard]] int head_size() const { return hidden / heads; }
  /// Numbers of what passes from layer to layer, and back: [tokens, hidden].
  [[nodiscard]] std::size_t boundary() const { return tokens() * to_size(hidden); }
};

/// Layers [first, first + count) of the model, in the order in which a microbatch meets them.
struct LayerRange {
  int first = 0, count = 0;
};

}  // namespace longhaul::nn
