// Kernels that are wrong: each in a process of its own, for their errors stay.
#include <cstdlib>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "cuda/intrinsics.hpp"
#include "support.hpp"

namespace {

using longhaul::testing::Buffer;
using longhaul::testing::run;
using longhaul::testing::StreamOf;

__global__ void half_waits(float* values) {
  if (threadIdx.x < 16) __syncthreads();
  values[threadIdx.x] = 1;
}
__global__ void waits_in_two_places(float* values) {
  if (threadIdx.x < 16) {
    __syncthreads();
    values[threadIdx.x] = 1;
  } else {
    __syncthreads();
    values[threadIdx.x] = 2;
  }
}
__global__ void half_a_warp_shuffles(float* values) {
  if (threadIdx.x < 16) values[threadIdx.x] = __shfl_sync(0xffffffffU, values[threadIdx.x], 0);
}
__global__ void writes_at(float* values, int at) { values[at] = 1; }
__global__ void traps(float*) { __trap(); }
__global__ void half_waits_for_the_kernel_before(float* values) {
  if (threadIdx.x < 16) longhaul::cuda::wait_for_kernel_before();
  values[threadIdx.x] = 1;
}

/// Runs `kernel` on 32 threads with 32 numbers, and ends the process with what synchronising says.
template <typename... Parameters, typename... Arguments>
[[noreturn]] void error_of(void (*kernel)(float*, Parameters...), Arguments... arguments) {
  const longhaul::testing::StreamOf stream;
  float* values = nullptr;
  if (cudaMalloc(&values, 64 * sizeof(float)) != cudaSuccess) std::_Exit(1);
  run(stream.get(), 1, 32, kernel, values, arguments...);
  const cudaError_t code = cudaStreamSynchronize(stream.get());
  const bool stays =
      code == cudaSuccess || (cudaMemset(values, 0, 4) == code && cudaGetLastError() == code &&
                              cudaGetLastError() == code);
  std::_Exit(stays ? static_cast<int>(code % 256) : 1);
}

auto ends_with(cudaError_t code) { return ::testing::ExitedWithCode(static_cast<int>(code % 256)); }

TEST(BrokenKernelsDeathTest, ABarrierThatNotAllReachIsFound) {
  EXPECT_EXIT(error_of(half_waits), ends_with(cudaErrorLaunchFailure),
              "divergent.*of 32 threads 16 have ended, 16 wait for all at __syncthreads at "
              ".*broken_kernel_test.cpp");
  EXPECT_EXIT(error_of(waits_in_two_places), ends_with(cudaErrorLaunchFailure),
              "divergent.*comes to __syncthreads at");
}

TEST(BrokenKernelsDeathTest, AShuffleThatNotAllReachIsFound) {
  EXPECT_EXIT(error_of(half_a_warp_shuffles), ends_with(cudaErrorLaunchFailure),
              "divergent.*16 wait for lanes ffff0000 of their warp");
}

[[noreturn]] void error_of_prepared(void (*kernel)(float*)) {
  const longhaul::testing::StreamOf stream;
  float* values = nullptr;
  if (cudaMalloc(&values, 64 * sizeof(float)) != cudaSuccess) std::_Exit(1);
  cudaLaunchAttribute prepared{cudaLaunchAttributeProgrammaticStreamSerialization, {1}};
  cudaLaunchConfig_t config{};
  config.gridDim = {1};
  config.blockDim = {32};
  config.stream = stream.get();
  config.attrs = &prepared;
  config.numAttrs = 1;
  if (cudaLaunchKernelEx(&config, kernel, values) != cudaSuccess) std::_Exit(1);
  std::_Exit(static_cast<int>(cudaStreamSynchronize(stream.get()) % 256));
}

TEST(BrokenKernelsDeathTest, APreparedKernelThatDoesNotWaitIsFound) {
  EXPECT_EXIT(error_of_prepared(half_waits_for_the_kernel_before),
              ends_with(cudaErrorLaunchFailure),
              "divergent: block .0, 0, 0. of a prepared kernel: 16 of 32 threads do not wait");
}

TEST(BrokenKernelsDeathTest, ATrapIsAnErrorThatStays) {
  EXPECT_EXIT(error_of(traps), ends_with(cudaErrorLaunchFailure),
              "thread [0-9]+ of block.*trapped");
}

#if defined(__SANITIZE_ADDRESS__)
TEST(BrokenKernelsDeathTest, TheAddressSanitizerFindsOneNumberTooMany) {
  EXPECT_DEATH(error_of(writes_at, 64), "use-after-poison|SEGV");  // the guard page
  EXPECT_DEATH(error_of(writes_at, -1), "use-after-poison");
}
#else
TEST(BrokenKernelsDeathTest, MemoryBehindTheEndCannotBeTouched) {
  EXPECT_EXIT(error_of(writes_at, 4096), ends_with(cudaErrorIllegalAddress),
              "used memory that is not its device's");
}

TEST(BrokenKernelsDeathTest, FreeingFindsOneNumberTooMany) {
  const auto write_and_free = [](int at) {
    const longhaul::testing::StreamOf stream;
    float* values = nullptr;
    if (cudaMalloc(&values, 63 * sizeof(float)) != cudaSuccess) std::_Exit(1);
    longhaul::testing::run(stream.get(), 1, 1, writes_at, values, at);
    std::_Exit(static_cast<int>(cudaFree(values) % 256));
  };
  EXPECT_EXIT(write_and_free(62), ends_with(cudaSuccess), "");
  EXPECT_EXIT(write_and_free(63), ends_with(cudaErrorIllegalAddress), "beyond the ends");
  EXPECT_EXIT(write_and_free(-1), ends_with(cudaErrorIllegalAddress), "beyond the ends");
}
#endif

TEST(BrokenKernelsDeathTest, MemoryOfTheHostIsNotTheDevices) {
  const auto give_host_memory = [] {
    const longhaul::testing::StreamOf stream;
    float on_the_host[32] = {};
    longhaul::testing::run(stream.get(), 1, 1, writes_at, &on_the_host[0], 0);
    std::_Exit(static_cast<int>(cudaStreamSynchronize(stream.get()) % 256));
  };
  EXPECT_EXIT(give_host_memory(), ends_with(cudaErrorIllegalAddress), "address of the host");
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(BrokenKernelsDeathTest, MemoryOfAStreamIsUsedBehindItsAllocation) {
  const auto use = [](bool waits) {
    const longhaul::testing::StreamOf owner, other;
    float* values = nullptr;
    cudaEvent_t event = nullptr;
    longhaul::testing::run(
        owner.get(), 1, 1, +[](unsigned ns) { longhaul::cuda::nanosleep(ns); }, 300'000'000U);
    if (cudaMallocAsync(&values, 64, owner.get()) != cudaSuccess ||
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess ||
        cudaEventRecord(event, owner.get()) != cudaSuccess)
      std::_Exit(1);
    if (waits && cudaStreamWaitEvent(other.get(), event) != cudaSuccess) std::_Exit(1);
    longhaul::testing::run(other.get(), 1, 1, writes_at, values, 0);
    std::_Exit(static_cast<int>(cudaStreamSynchronize(other.get()) % 256));
  };
  EXPECT_EXIT(use(false), ends_with(cudaErrorIllegalAddress), "before its stream has come to");
  EXPECT_EXIT(use(true), ends_with(cudaSuccess), "");
}
#endif

TEST(BrokenKernelsDeathTest, MemoryOfAnotherDeviceIsNotThisOnes) {
  const auto use = [](int device_of_kernel) {
    setenv("LONGHAUL_ON_HOST_DEVICES", "2", 1);
    float* values = nullptr;
    if (cudaMalloc(&values, 64) != cudaSuccess || cudaSetDevice(device_of_kernel) != cudaSuccess)
      std::_Exit(1);
    const longhaul::testing::StreamOf stream;
    longhaul::testing::run(stream.get(), 1, 1, writes_at, values, 0);
    std::_Exit(static_cast<int>(cudaStreamSynchronize(stream.get()) % 256));
  };
  EXPECT_EXIT(use(1), ends_with(cudaErrorIllegalAddress), "of another device");
  EXPECT_EXIT(use(0), ends_with(cudaSuccess), "");
}

TEST(BrokenKernelsDeathTest, EventsBelongToTheirDevice) {
  const auto record = [] {
    setenv("LONGHAUL_ON_HOST_DEVICES", "2", 1);
    cudaEvent_t event = nullptr;
    if (cudaEventCreate(&event) != cudaSuccess || cudaSetDevice(1) != cudaSuccess) std::_Exit(1);
    const longhaul::testing::StreamOf stream;
    std::_Exit(static_cast<int>(cudaEventRecord(event, stream.get()) % 256));
  };
  EXPECT_EXIT(record(), ends_with(cudaErrorInvalidResourceHandle), "of another device");
}

TEST(BrokenKernelsDeathTest, WithoutADriverEverythingSaysSo) {
  const auto ask = [] {
    setenv("LONGHAUL_ON_HOST_DEVICES", "0", 1);
    int count = 7, driver = 7;
    const bool none = cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver && count == 0 &&
                      cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;
    std::_Exit(none ? 0 : 1);
  };
  EXPECT_EXIT(ask(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
