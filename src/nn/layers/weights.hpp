#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/layers/layer.hpp"

namespace longhaul::nn {

/// Weights, gradients and master weights of a chunk, each in one piece. Every parameter begins at a
/// multiple of 64 numbers, where devices read fastest; what lies between is 0 and stays 0.
class Weights {
public:
  /// Makes what `layers` need, from `seed` and the names alone, and binds it to them; without
  /// gradients and masters where they are `forward_only`.
  Weights(TensorOps& math, DeviceMemory& memory, std::span<const std::unique_ptr<Layer>> layers,
          std::uint64_t seed, bool forward_only);

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] ArrayView weights() const { return weights_.view(); }
  [[nodiscard]] ArrayView gradients() const { return gradients_.view(); }
  /// The weights themselves where they are f32; empty where there are none.
  [[nodiscard]] ArrayView masters() const {
    return masters_ || weights_.view().type != NumberType::f32 ? masters_.view() : weights_.view();
  }

private:
  void make(TensorOps& math, DeviceMemory& memory, const ParameterNeed& need, std::size_t first,
            std::uint64_t seed);

  Buffer weights_, gradients_, masters_;
  std::vector<Parameter> parameters_;
};

/// Where each of `layers`' parameters stands in such a piece.
[[nodiscard]] ParameterPlaces places_of(std::span<const std::unique_ptr<Layer>> layers);

/// Throws Error where no chunk of these layers can be made of the shape; says why.
void check_layers(const ModelShape& shape, LayerRange layers);

}  // namespace longhaul::nn
