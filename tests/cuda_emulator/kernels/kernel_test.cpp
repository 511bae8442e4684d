#include <numeric>
#include <random>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "cuda/intrinsics.hpp"
#include "support.hpp"

namespace {

using longhaul::testing::Buffer;
using longhaul::testing::BufferOf;
using longhaul::testing::run;
using longhaul::testing::StreamOf;

constexpr unsigned kAll = 0xffffffffU;

/// Sums `count` numbers: shuffles within warps, shared memory between them, an atomic over blocks.
__global__ void sum_all(const float* values, unsigned count, float* total) {
  LONGHAUL_SHARED float sums[32];
  float sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    sum += values[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0.0F;
  for (unsigned offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(kAll, sum, offset);
  if (threadIdx.x == 0) atomicAdd(total, sum);
}

TEST(Kernels, SumsWithShufflesBarriersAndAtomics) {
  const longhaul::testing::StreamOf stream;
  for (const unsigned threads : {32U, 64U, 256U, 1024U})
    for (const unsigned blocks : {1U, 3U}) {
      std::vector<float> values(5000);
      std::iota(values.begin(), values.end(), 1.0F);
      const Buffer input{values}, total{{0.0F}};
      longhaul::testing::run(stream.get(), blocks, threads, sum_all, input.get(), 5000U,
                             total.get());
      ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
      EXPECT_NEAR(total.read()[0], 12'502'500.0F, 4.0F) << blocks << " blocks of " << threads;
    }
}

__global__ void take_tickets(float* next, float* tickets) {
  tickets[blockIdx.x] = atomicAdd(next, 1.0F);
}

TEST(Kernels, BlocksComeInTheOtherOrderInTheNextLaunch) {
  const longhaul::testing::StreamOf stream;
  std::vector<std::vector<float>> tickets;
  for (int launch = 0; launch < 2; ++launch) {
    const Buffer next{{0.0F}}, taken{std::vector<float>(3)};
    longhaul::testing::run(stream.get(), 3, 1, take_tickets, next.get(), taken.get());
    ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    tickets.push_back(taken.read());
  }
  EXPECT_EQ(tickets[0], (std::vector<float>{tickets[1].rbegin(), tickets[1].rend()}));
}

__global__ void all_shuffles(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = __shfl_sync(kAll, lane, 5);
  out[32 + lane] = __shfl_up_sync(kAll, lane, 3);
  out[64 + lane] = __shfl_down_sync(kAll, lane, 3);
  out[96 + lane] = __shfl_xor_sync(kAll, lane, 9);
  out[128 + lane] = __shfl_sync(kAll, lane, 1, 8);
  out[160 + lane] = static_cast<int>(__ballot_sync(kAll, lane % 3 == 0));
}

TEST(Kernels, ShufflesReadTheLaneThatCudaSays) {
  const longhaul::testing::StreamOf stream;
  const longhaul::testing::BufferOf<int> out{std::vector<int>(192, -1)};
  longhaul::testing::run(stream.get(), 1, 32, all_shuffles, out.get());
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  const auto got = out.read();
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const int own = static_cast<int>(lane);
    EXPECT_EQ(got[lane], 5);
    EXPECT_EQ(got[32 + lane], own < 3 ? own : own - 3);
    EXPECT_EQ(got[64 + lane], own > 28 ? own : own + 3);
    EXPECT_EQ(got[96 + lane], own ^ 9);
    EXPECT_EQ(got[128 + lane], own / 8 * 8 + 1);
    EXPECT_EQ(static_cast<unsigned>(got[160 + lane]), 0x49249249U);
  }
}

__global__ void numbers_of(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  __syncthreads();
  out[block * 24 + thread] = block * 1000 + thread;
}

TEST(Kernels, CountBlocksAndThreadsInThreeDimensions) {
  const longhaul::testing::StreamOf stream;
  const longhaul::testing::BufferOf<unsigned> out{std::vector<unsigned>(24 * 24)};
  cudaLaunchConfig_t config{};
  config.gridDim = {2, 3, 4};
  config.blockDim = {4, 3, 2};
  config.stream = stream.get();
  ASSERT_EQ(cudaLaunchKernelEx(&config, numbers_of, out.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  const auto got = out.read();
  for (unsigned i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i / 24 * 1000 + i % 24);
}

__global__ void reverse(float* values) {
  LONGHAUL_DYNAMIC_SHARED(float, tile);
  tile[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

TEST(Kernels, HaveDynamicSharedMemoryThatBeginsAsNaN) {
  const longhaul::testing::StreamOf stream;
  const Buffer values{{1, 2, 3, 4, 5}};
  cudaLaunchConfig_t config{};
  config.gridDim = {1};
  config.blockDim = {5};
  config.dynamicSmemBytes = 5 * sizeof(float);
  config.stream = stream.get();
  ASSERT_EQ(cudaLaunchKernelEx(&config, reverse, values.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_EQ(values.read(), (std::vector<float>{5, 4, 3, 2, 1}));
  config.dynamicSmemBytes = 300U << 10U;
  EXPECT_EQ(cudaLaunchKernelEx(&config, reverse, values.get()), cudaErrorInvalidConfiguration);
}

/// Lacks the barrier between writing and reading its neighbour's number.
__global__ void races(float* values) {
  LONGHAUL_SHARED float tile[64];
  tile[threadIdx.x] = -1;
  __syncthreads();
  tile[threadIdx.x] = static_cast<float>(threadIdx.x);
  values[threadIdx.x] = tile[(threadIdx.x + 1) % 64];
  __syncthreads();
}

TEST(Kernels, RunThreadsInBothOrdersSoThatAMissingBarrierShows) {
  const longhaul::testing::StreamOf stream;
  const Buffer once{std::vector<float>(64)}, again{std::vector<float>(64)};
  longhaul::testing::run(stream.get(), 1, 64, races, once.get());
  longhaul::testing::run(stream.get(), 1, 64, races, again.get());
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_NE(once.read(), again.read());
}

}  // namespace
