#pragma once

#include <cstddef>

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

}  // namespace longhaul::nn
