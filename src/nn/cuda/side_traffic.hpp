#pragma once

#include <cstdint>
#include <memory>

#include "nn/tensor_ops.hpp"
#include "nn/work_marks.hpp"

/// What a device does beside the layers, and when. Made by src/nn/cuda where CUDA was built in; in
/// src/nn/without_gpu/without_cuda.cpp where not.
namespace longhaul::nn {

/// Of `math`'s stream by events of CUDA; of a CPU by the host's clock. `math` outlives it.
[[nodiscard]] std::unique_ptr<WorkMarks> make_work_marks(TensorOps& math);

/// Multiprocessors that TrafficKind::sum takes, a block each: as many as a collective library's
/// channels.
inline constexpr unsigned kSumBlocks = 16;

/// Traffic of a message or a collective, as it can be had on one GPU.
enum class TrafficKind : std::uint8_t {
  copy,          ///< within the device's memory, as the driver does it
  sum,           ///< a kernel on kSumBlocks multiprocessors: to = to + from, bf16
  from_pinned,   ///< from pinned memory of the host: the copy engine, over PCIe
  from_pageable  ///< from ordinary memory of the host, through the driver's own pinned pieces
};

/// Moves the same bytes again and again, in the order of `math`'s stream.
class SideTraffic {
public:
  SideTraffic() = default;
  virtual ~SideTraffic() = default;
  SideTraffic(const SideTraffic&) = delete;
  SideTraffic& operator=(const SideTraffic&) = delete;

  virtual void pass() = 0;
  /// What lies at the destination; waits. For tests.
  [[nodiscard]] virtual std::vector<std::byte> arrived() = 0;
};

/// `bytes` (a multiple of 2) a pass. `math`, which is a GPU's, outlives it. Throws Error where
/// there is not so much memory, or no GPU.
[[nodiscard]] std::unique_ptr<SideTraffic> make_side_traffic(TensorOps& math, TrafficKind kind,
                                                             std::size_t bytes);

}  // namespace longhaul::nn
