#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.hpp"

namespace {

using longhaul::testing::Buffer;
using longhaul::testing::StreamOf;

TEST(Memory, BeginsAsNaN) {
  float* values = nullptr;
  ASSERT_EQ(cudaMalloc(&values, 100 * sizeof(float)), cudaSuccess);
  std::vector<float> read(100);
  ASSERT_EQ(cudaMemcpy(read.data(), values, 400, cudaMemcpyDeviceToHost), cudaSuccess);
  for (const float value : read) EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values) % 256, 0U);
  EXPECT_EQ(cudaFree(values), cudaSuccess);
  EXPECT_EQ(cudaFree(values), cudaErrorInvalidValue);
}

TEST(Memory, CopiesCheckTheirEndsAndTheirDirection) {
  const Buffer values{std::vector<float>(10, 1.0F)};
  std::vector<float> host(20);
  EXPECT_EQ(cudaMemcpy(host.data(), values.get(), 44, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), values.get(), 40, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), values.get(), 40, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemset(values.get() + 9, 0, 8), cudaErrorInvalidValue);
}

TEST(Memory, EndsWhereTheDeviceEnds) {
  std::size_t left = 0, all = 0;
  ASSERT_EQ(cudaMemGetInfo(&left, &all), cudaSuccess);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, all + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  std::size_t left_now = 0;
  ASSERT_EQ(cudaMemGetInfo(&left_now, &all), cudaSuccess);
  EXPECT_EQ(left_now, left);
}

TEST(Memory, OfAStreamIsFreedInItsOrder) {
  const longhaul::testing::StreamOf stream;
  float* values = nullptr;
  ASSERT_EQ(cudaMallocAsync(&values, 400, stream.get()), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(values, 0, 400, stream.get()), cudaSuccess);
  std::vector<float> read(100, 7.0F);
  ASSERT_EQ(cudaMemcpyAsync(read.data(), values, 400, cudaMemcpyDeviceToHost, stream.get()),
            cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(values, stream.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_EQ(read, std::vector<float>(100, 0.0F));
  cudaIpcMemHandle_t handle{};
  ASSERT_EQ(cudaMallocAsync(&values, 400, stream.get()), cudaSuccess);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, values), cudaErrorInvalidValue);
  ASSERT_EQ(cudaFreeAsync(values, stream.get()), cudaSuccess);
}

TEST(Numbers, RoundToBf16ToTheNearestTiesToEven) {
  const auto rounded = [](float value) { return __bfloat162float(__float2bfloat16_rn(value)); };
  EXPECT_EQ(rounded(1.0F), 1.0F);
  EXPECT_EQ(rounded(1.0F + 0x1p-8F), 1.0F);                // tie: even is below
  EXPECT_EQ(rounded(1.0F + 3 * 0x1p-8F), 1.0F + 0x1p-6F);  // tie: even is above
  EXPECT_EQ(rounded(1.0F + 0x1p-8F + 0x1p-20F), 1.0F + 0x1p-7F);
  EXPECT_EQ(rounded(-3.140625F), -3.140625F);
  EXPECT_EQ(rounded(INFINITY), INFINITY);
  EXPECT_EQ(rounded(3.4e38F), INFINITY);
  EXPECT_TRUE(std::isnan(rounded(NAN)));
}

/// Another process that opens what this one has: an address, an event, a way back.
struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};

/// The child's part: waits for the event in a stream, doubles the numbers, exits with 0.
[[noreturn]] void open_and_double(int from) {
  Handles handles{};
  if (read(from, &handles, sizeof handles) != sizeof handles) _exit(1);
  void* memory = nullptr;
  cudaEvent_t event = nullptr;
  cudaStream_t stream = nullptr;
  if (cudaIpcOpenMemHandle(&memory, handles.memory, cudaIpcMemLazyEnablePeerAccess) !=
          cudaSuccess ||
      cudaIpcOpenEventHandle(&event, handles.event) != cudaSuccess ||
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
    _exit(2);
  cudaLaunchConfig_t config{};
  config.gridDim = {1};
  config.blockDim = {8};
  config.stream = stream;
  float* const values = static_cast<float*>(memory);
  if (cudaStreamWaitEvent(stream, event) != cudaSuccess ||
      cudaLaunchKernelEx(
          &config, +[](float* numbers) { numbers[threadIdx.x] *= 2; }, values) != cudaSuccess ||
      cudaStreamSynchronize(stream) != cudaSuccess || cudaIpcCloseMemHandle(memory) != cudaSuccess)
    _exit(3);
  _exit(0);
}

TEST(Processes, ShareMemoryAndEventsThroughHandles) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  // Before any stream of this process has a thread: they do not come along.
  const pid_t child = fork();
  if (child == 0) open_and_double(pipe_ends[0]);
  const longhaul::testing::StreamOf stream;
  const Buffer values{std::vector<float>(8, 21.0F)};
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess),
            cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream.get()), cudaSuccess);
  Handles handles{};
  ASSERT_EQ(cudaIpcGetMemHandle(&handles.memory, values.get()), cudaSuccess);
  ASSERT_EQ(cudaIpcGetEventHandle(&handles.event, event), cudaSuccess);
  void* own = nullptr;  // as CUDA does: a process does not open its own
  EXPECT_EQ(cudaIpcOpenMemHandle(&own, handles.memory, cudaIpcMemLazyEnablePeerAccess),
            cudaErrorMapBufferObjectFailed);
  ASSERT_EQ(write(pipe_ends[1], &handles, sizeof handles), static_cast<ssize_t>(sizeof handles));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(values.read(), std::vector<float>(8, 42.0F));
  cudaEventDestroy(event);
  for (const int end : pipe_ends) close(end);
}

}  // namespace
