#include "nn/cuda/stream_memory_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

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

Staging::Staging(cudaStream_t stream) : stream_{stream} {}

void Staging::to_device(std::span<const std::byte> from, std::byte* to) {
  if (from.empty()) return;
  LONGHAUL_ASSERT(from.size() <= kPieceBytes, "{} bytes in one piece", from.size());
  std::byte* const piece = memory_.data() + next_ * kPieceBytes;
  const cuda::Event& left = left_[next_];
  left.wait_on_host();
  std::memcpy(piece, from.data(), from.size());
  cuda::check(cudaMemcpyAsync(to, piece, from.size(), cudaMemcpyHostToDevice, stream_));
  left.record(stream_);
  next_ = (next_ + 1) % kPieces;
}

void Staging::to_host(const std::byte* from, std::span<std::byte> to) {
  if (to.empty()) return;
  LONGHAUL_ASSERT(to.size() <= kPieceBytes, "{} bytes in one piece", to.size());
  std::byte* const piece = memory_.data() + next_ * kPieceBytes;
  left_[next_].wait_on_host();
  cuda::check(cudaMemcpyAsync(piece, from, to.size(), cudaMemcpyDeviceToHost, stream_));
  cuda::check(cudaStreamSynchronize(stream_));
  std::memcpy(to.data(), piece, to.size());
}

}  // namespace longhaul::nn
