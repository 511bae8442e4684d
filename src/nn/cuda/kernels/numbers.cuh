#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda/intrinsics.hpp"
#include "cuda/launch.hpp"

/// Shared by the kernels of this folder: numbers in registers as fp32, in memory as bf16 or f32,
/// and sums over a block.
namespace longhaul::nn {

using Bf16 = __nv_bfloat16;

/// Threads of a block of the kernels here, where they do not say otherwise.
constexpr int kThreads = 256;
constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffU;

__device__ inline int this_thread() { return static_cast<int>(threadIdx.x); }
/// Number of this thread among all of the launch.
__device__ inline std::size_t thread_of_all() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// kCount numbers that lie side by side.
template <int kCount>
struct Numbers {
  float at[kCount];
};

/// Reads kCount numbers. 8 (of bf16: one access of 16 bytes; of f32: two) need an address that is a
/// multiple of 16; 1 needs nothing.
template <int kCount>
__device__ inline Numbers<kCount> read(const Bf16* address) {
  Numbers<kCount> numbers;
  if constexpr (kCount == 8) {
    const cuda::Pack<Bf16> pack = cuda::load_pack(address);
#pragma unroll
    for (int i = 0; i < 8; ++i) numbers.at[i] = __bfloat162float(pack.values[i]);
  } else {
    static_assert(kCount == 1);
    numbers.at[0] = __bfloat162float(*address);
  }
  return numbers;
}

template <int kCount>
__device__ inline Numbers<kCount> read(const float* address) {
  Numbers<kCount> numbers;
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int quad = 0; quad < kCount / 4; ++quad) {
      const cuda::Pack<float> pack = cuda::load_pack(address + 4 * quad);
#pragma unroll
      for (int i = 0; i < 4; ++i) numbers.at[4 * quad + i] = pack.values[i];
    }
  } else {
    static_assert(kCount == 1);
    numbers.at[0] = *address;
  }
  return numbers;
}

/// Rounds to the nearest, ties to even.
template <int kCount>
__device__ inline void write(Bf16* address, const Numbers<kCount>& numbers) {
  if constexpr (kCount == 8) {
    cuda::Pack<Bf16> pack;
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(numbers.at[i], numbers.at[i + 1]);
      pack.values[i] = pair.x;
      pack.values[i + 1] = pair.y;
    }
    cuda::store_pack(address, pack);
  } else {
    static_assert(kCount == 1);
    *address = __float2bfloat16_rn(numbers.at[0]);
  }
}

template <int kCount>
__device__ inline void write(float* address, const Numbers<kCount>& numbers) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int quad = 0; quad < kCount / 4; ++quad) {
      cuda::Pack<float> pack;
#pragma unroll
      for (int i = 0; i < 4; ++i) pack.values[i] = numbers.at[4 * quad + i];
      cuda::store_pack(address + 4 * quad, pack);
    }
  } else {
    static_assert(kCount == 1);
    *address = numbers.at[0];
  }
}

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// `value` of all threads of the block put together: the same in each of them and in every run.
/// Called by all threads; `scratch` holds a number for each warp.
template <typename Operation>
__device__ inline float reduce_block(float value, float* scratch, Operation operation) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value = operation(value, __shfl_xor_sync(kAllLanes, value, offset));
  __syncthreads();  // the scratch may still be read for the reduction before
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = scratch[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp)
    value = operation(value, scratch[warp]);
  return value;
}

}  // namespace longhaul::nn
