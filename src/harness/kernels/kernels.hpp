#pragma once

#include <vector>

#include "harness/kernels/timing.hpp"
#include "nn/layers/shape.hpp"
#include "nn/memory.hpp"

namespace longhaul::bench {

/// A large copy, then a large product: what the device can do at most. `size` of the product's
/// sides; `copied` numbers.
[[nodiscard]] std::vector<LayerPart> time_references(TensorOps& math, DeviceMemory& memory,
                                                     int size, std::size_t copied,
                                                     const TimingOptions& options);

/// The products and the other calls of a layer, of embedding, head and optimizer, at the sizes of
/// `shape`, each on inputs that change from call to call and are larger than a cache together.
[[nodiscard]] std::vector<LayerPart> time_kernels(TensorOps& math, DeviceMemory& memory,
                                                  const ModelShape& shape,
                                                  const TimingOptions& options);

}  // namespace longhaul::bench
