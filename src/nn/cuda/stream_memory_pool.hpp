#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <cuda_runtime_api.h>

#include "cuda/handles.hpp"
#include "nn/tensor_ops.hpp"

namespace longhaul::nn {

/// Memory of one device in the order of one stream: what is given back is handed out again at once,
/// for later work on that stream. Memory stays with the pool, so that in the steady state no
/// call reaches the driver's allocator; what is asked beyond that is mapped, not copied together,
/// and so sizes that change do not split the device up. cudaIpcGetMemHandle does not take it.
class StreamMemoryPool {
public:
  StreamMemoryPool(int device, cudaStream_t stream);

  /// At a multiple of 256 bytes; nullptr where the device has not that much left.
  [[nodiscard]] std::byte* allocate(std::size_t bytes);
  void release(std::byte* memory) noexcept;

private:
  cuda::Owner<cudaMemPool_t, nullptr, cudaMemPoolDestroy> pool_;
  cudaStream_t stream_;
};

/// Memory for one call's work. Throws Error (exit code 3) that names `what` where there is none.
class Scratch {
public:
  Scratch(StreamMemoryPool& pool, std::size_t count, NumberType type, const char* what);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { pool_.release(view_.data); }
  [[nodiscard]] ArrayView view() const { return view_; }

private:
  StreamMemoryPool& pool_;
  ArrayView view_;
};

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
