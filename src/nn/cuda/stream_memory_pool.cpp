#include "nn/cuda/stream_memory_pool.hpp"

#include <algorithm>
#include <cstdint>

#include "base/error.hpp"
#include "cuda/check.hpp"

namespace longhaul::nn {
namespace {

cudaMemPool_t make_pool(int device) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;  // CUDA's word for memory that stays put
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t pool = nullptr;
  cuda::check(cudaMemPoolCreate(&pool, &properties));
  std::uint64_t keep_all = UINT64_MAX;
  cuda::check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
  return pool;
}

}  // namespace

StreamMemoryPool::StreamMemoryPool(int device, cudaStream_t stream)
    : pool_{make_pool(device)}, stream_{stream} {}

std::byte* StreamMemoryPool::allocate(std::size_t bytes) {
  void* memory = nullptr;
  bytes = std::max<std::size_t>(bytes, 1);
  cudaError_t code = cudaMallocFromPoolAsync(&memory, bytes, pool_.get(), stream_);
  if (code == cudaErrorMemoryAllocation) {
    // Perhaps what is kept is in pieces: wait for it, give it back, ask again.
    static_cast<void>(cudaGetLastError());
    cuda::check(cudaStreamSynchronize(stream_));
    cuda::check(cudaMemPoolTrimTo(pool_.get(), 0));
    code = cudaMallocFromPoolAsync(&memory, bytes, pool_.get(), stream_);
  }
  if (code == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  cuda::check(code);
  return static_cast<std::byte*>(memory);
}

void StreamMemoryPool::release(std::byte* memory) noexcept {
  if (memory != nullptr) cuda::report(cudaFreeAsync(memory, stream_), "giving back device memory");
}

Scratch::Scratch(StreamMemoryPool& pool, std::size_t count, NumberType type, const char* what)
    : pool_{pool}, view_{nullptr, count, type} {
  view_.data = pool.allocate(view_.bytes());
  if (view_.data == nullptr)
    throw Error{fmt::format("the device has no {} bytes left for {}. Give layers a smaller budget, "
                            "or use smaller microbatches.",
                            view_.bytes(), what),
                ExitCode::run_failed};
}

}  // namespace longhaul::nn
