#pragma once

#include <vector>

#include "harness/kernels/timing.hpp"
#include "nn/layers/shape.hpp"
#include "nn/memory.hpp"

namespace longhaul::bench {

/// FLOPs of the matrix products of one decoder layer for one microbatch: weights, and causal
/// attention, of whose square half is counted.
struct LayerFlops {
  explicit LayerFlops(const ModelShape& shape);
  double weights = 0;    ///< of one pass: F, D and W take one each
  double attention = 0;  ///< of F; D takes two
};

/// Throws Error (the answer is no) unless the calls of a layer's F, D and W sum to these FLOPs.
void check_flops(TensorOps& math, const ModelShape& shape);

/// F, D, W, B and R of one decoder layer, several microbatches one after the other. Throws Error
/// (the answer is no) where outputs or gradients are not finite or all zero.
[[nodiscard]] std::vector<LayerPart> time_blocks(TensorOps& math, DeviceMemory& memory,
                                                 const ModelShape& shape, int samples);

}  // namespace longhaul::bench
