#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <cuda_runtime_api.h>

#include "cuda/handles.hpp"

namespace longhaul::nn {

/// The way between ordinary memory of the host and the device: through pinned pieces, taken in
/// turns, so that a copy to the device returns at once unless all of them are still under way. (A
/// copy straight from ordinary memory may wait for the whole stream.)
class Staging {
public:
  static constexpr std::size_t kPieceBytes = 1U << 20U;

  explicit Staging(cudaStream_t stream);

  /// `from` (at most kPieceBytes) may be changed when this returns.
  void to_device(std::span<const std::byte> from, std::byte* to);
  /// Waits for the earlier work of the stream.
  void to_host(const std::byte* from, std::span<std::byte> to);

private:
  static constexpr std::size_t kPieces = 8;
  cudaStream_t stream_;
  cuda::PinnedMemory<std::byte> memory_{kPieces * kPieceBytes};
  std::array<cuda::Event, kPieces> left_;  ///< after the copy from that piece
  std::size_t next_ = 0;
};

}  // namespace longhaul::nn
