#include <algorithm>

#include "cuda/intrinsics.hpp"
#include "cuda/launch.hpp"
#include "device/cuda/patterns.hpp"

namespace longhaul::device {
namespace {

constexpr std::size_t kId = sizeof(engine::PayloadId);
constexpr unsigned kThreads = 256;
/// A few of the device's multiprocessors: others run blocks meanwhile.
constexpr unsigned kMostBlocks = 16;

__global__ void fill_kernel(engine::PayloadId id, const std::byte* window, std::byte* payload,
                            std::size_t size) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step)
    payload[i] = i < kId ? reinterpret_cast<const std::byte*>(&id)[i] : window[i - kId];
}

__global__ void check_kernel(const std::byte* payload, std::size_t size, const std::byte* window,
                             CheckedPayload* result) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
    if (i < kId) {
      reinterpret_cast<std::byte*>(&result->found)[i] = payload[i];
    } else if (payload[i] != window[i - kId]) {
      result->wrong = 1;  // each thread that finds it writes the same
    }
  }
}

__global__ void done_kernel(std::uint64_t* done) { cuda::store_for_system(done, 1); }

__global__ void corrupt_kernel(std::byte* payload, std::size_t size) {
  const auto last = static_cast<unsigned char>(payload[size - 1]);
  payload[size - 1] = static_cast<std::byte>(last ^ 1U);
}

cuda::Launch over(std::size_t size, cudaStream_t stream) {
  const unsigned blocks = std::min(cuda::blocks_for(size, std::size_t{kThreads} * 16), kMostBlocks);
  return {dim3{blocks}, dim3{kThreads}, 0, stream};
}

cuda::Launch one_thread(cudaStream_t stream) { return {dim3{1}, dim3{1}, 0, stream}; }

template <typename... Parameters>
void load(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  cuda::check(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)));
}

}  // namespace

void fill_payload(const engine::PayloadId& id, const std::byte* window, std::byte* payload,
                  std::size_t size, cudaStream_t stream) {
  cuda::launch(fill_kernel, over(size, stream), id, window, payload, size);
}

void check_payload(const std::byte* payload, std::size_t size, const std::byte* window,
                   CheckedPayload* result, cudaStream_t stream) {
  cuda::launch(check_kernel, over(size, stream), payload, size, window, result);
  cuda::launch(done_kernel, one_thread(stream), &result->done);
}

void corrupt_payload(std::byte* payload, std::size_t size, cudaStream_t stream) {
  cuda::launch(corrupt_kernel, one_thread(stream), payload, size);
}

void load_pattern_kernels() {
  load(fill_kernel);
  load(check_kernel);
  load(done_kernel);
  load(corrupt_kernel);
}

}  // namespace longhaul::device
