#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/tensor_ops.hpp"

namespace longhaul::bench {

/// A part that is measured on a device: a block of a layer, a product, a kernel.
struct LayerPart {
  std::string group;  ///< "reference", "block", "gemm", "kernel"
  std::string name;
  double flops = 0;  ///< of matrix products
  double bytes = 0;  ///< that pass through the device's memory (docs/kernels.md)
  std::vector<double> seconds;
};

struct TimingOptions {
  int samples = 20;
  double batch_seconds = 5e-3;  ///< a sample is the mean of calls that take at least so long
};

/// Seconds of a call, `samples` times: of many calls between two waits for the device, so that
/// neither the launch nor the wait counts. call(n) is call number n since the start, to change to
/// other inputs with.
[[nodiscard]] std::vector<double> time_calls(TensorOps& math, const TimingOptions& options,
                                             const std::function<void(int)>& call);

/// Seconds from an idle device to an idle device.
[[nodiscard]] double time_once(TensorOps& math, const std::function<void()>& work);

}  // namespace longhaul::bench
