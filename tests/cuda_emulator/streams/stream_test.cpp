#include <atomic>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "cuda/intrinsics.hpp"
#include "support.hpp"

namespace {

using longhaul::testing::Buffer;
using longhaul::testing::run;
using longhaul::testing::StreamOf;

__global__ void add_to(float* values, float more) { values[threadIdx.x] += more; }
__global__ void scale_by(float* values, float factor) { values[threadIdx.x] *= factor; }
__global__ void wait_for(const std::uint64_t* flag) {
  while (longhaul::cuda::load_of_system(flag) == 0) longhaul::cuda::nanosleep(1000);
}

/// A flag of the host that a kernel waits for: work after it cannot begin before.
class Gate {
public:
  Gate() {
    EXPECT_EQ(cudaHostAlloc(&flag_, sizeof *flag_, 0), cudaSuccess);
    *flag_ = 0;
  }
  ~Gate() { cudaFreeHost(flag_); }
  void close(cudaStream_t stream) { longhaul::testing::run(stream, 1, 1, wait_for, flag_); }
  void open() { std::atomic_ref<std::uint64_t>{* flag_} = 1; }

private:
  std::uint64_t* flag_ = nullptr;
};

TEST(Streams, WorkOfOneStreamIsDoneInOrder) {
  const longhaul::testing::StreamOf stream;
  const Buffer values{std::vector<float>(32, 1.0F)};
  for (int i = 0; i < 10; ++i) {
    longhaul::testing::run(stream.get(), 1, 32, add_to, values.get(), 1.0F);
    longhaul::testing::run(stream.get(), 1, 32, scale_by, values.get(), 2.0F);
  }
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_EQ(values.read(), std::vector<float>(32, 3070.0F));  // x -> 2 (x + 1), ten times
}

TEST(Streams, AnEventHoldsAnotherStreamAndNothingElseDoes) {
  const longhaul::testing::StreamOf first, second;
  Gate gate;
  const Buffer values{std::vector<float>(4, 1.0F)}, others{std::vector<float>(4, 1.0F)};
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  gate.close(first.get());
  longhaul::testing::run(first.get(), 1, 4, add_to, values.get(), 5.0F);
  ASSERT_EQ(cudaEventRecord(event, first.get()), cudaSuccess);
  longhaul::testing::run(second.get(), 1, 4, add_to, others.get(), 1.0F);
  ASSERT_EQ(cudaStreamSynchronize(second.get()), cudaSuccess);  // before the gate opens
  ASSERT_EQ(cudaStreamWaitEvent(second.get(), event), cudaSuccess);
  longhaul::testing::run(second.get(), 1, 4, scale_by, values.get(), 2.0F);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(second.get()), cudaErrorNotReady);
  gate.open();
  ASSERT_EQ(cudaStreamSynchronize(second.get()), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(values.read(), std::vector<float>(4, 12.0F));
  EXPECT_EQ(others.read(), std::vector<float>(4, 2.0F));
  cudaEventDestroy(event);
}

TEST(Streams, AWaitIsForTheLastRecordBeforeIt) {
  const longhaul::testing::StreamOf first, second;
  Gate gate;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);  // never recorded
  ASSERT_EQ(cudaStreamWaitEvent(second.get(), event), cudaSuccess);
  gate.close(first.get());
  ASSERT_EQ(cudaEventRecord(event, first.get()), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(second.get()), cudaSuccess);  // waits for nothing
  gate.open();
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  cudaEventDestroy(event);
}

TEST(Streams, TimedEventsMeasureWhatLiesBetween) {
  const longhaul::testing::StreamOf stream;
  cudaEvent_t begin = nullptr, end = nullptr, untimed = nullptr;
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(begin, stream.get()), cudaSuccess);
  longhaul::testing::run(
      stream.get(), 1, 1, +[](unsigned ns) { longhaul::cuda::nanosleep(ns); }, 3'000'000U);
  ASSERT_EQ(cudaEventRecord(end, stream.get()), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  float took = 0;
  EXPECT_EQ(cudaEventElapsedTime(&took, begin, end), cudaSuccess);
  EXPECT_GE(took, 3.0F);
  EXPECT_EQ(cudaEventElapsedTime(&took, begin, untimed), cudaErrorInvalidResourceHandle);
  for (cudaEvent_t event : {begin, end, untimed}) cudaEventDestroy(event);
}

TEST(Streams, FunctionsOfTheHostHaveTheirTurnAndMayNotCallCuda) {
  const longhaul::testing::StreamOf stream;
  struct Seen {
    std::atomic<bool> called{false};
    cudaError_t code = cudaSuccess;
  } seen;
  ASSERT_EQ(cudaLaunchHostFunc(
                stream.get(),
                [](void* user) {
                  auto& mine = *static_cast<Seen*>(user);
                  mine.code = cudaDeviceSynchronize();
                  mine.called = true;
                },
                &seen),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_TRUE(seen.called);
  EXPECT_EQ(seen.code, cudaErrorNotPermitted);
}

}  // namespace
