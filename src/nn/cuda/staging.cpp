#include "nn/cuda/staging.hpp"

#include <cstring>

#include "base/error.hpp"

namespace longhaul::nn {

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
