// Ranks are threads here, each with a device and streams of its own; the same shared memory carries
// processes (the transports' tests run those).
#include <chrono>
#include <deque>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include <cuda_bf16.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include "nccl/nccl_world.hpp"
#include "support.hpp"

namespace {

using longhaul::testing::BufferOf;
using longhaul::testing::StreamOf;

/// Runs `body(rank)` on a thread for each of `ranks`.
void on_ranks(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

class Nccl : public ::testing::Test {
protected:
  void SetUp() override { setenv("LONGHAUL_ON_HOST_NCCL_SHARED_DEVICE", "1", 1); }
  void TearDown() override { unsetenv("LONGHAUL_ON_HOST_NCCL_SHARED_DEVICE"); }
  /// A communicator of all ranks; their work in `body`.
  static void with_comms(int ranks,
                         const std::function<void(int, ncclComm_t, cudaStream_t)>& body) {
    ncclUniqueId id{};
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    on_ranks(ranks, [&](int rank) {
      ncclComm_t comm = nullptr;
      ASSERT_EQ(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess);
      const longhaul::testing::StreamOf stream;
      body(rank, comm, stream.get());
      EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    });
  }
};

std::vector<float> counting(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_F(Nccl, SendsArriveWholeAndInOrder) {
  with_comms(2, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    // Freed at the end: cudaFree waits for the device, and so for the other rank's work.
    std::deque<longhaul::testing::BufferOf<float>> buffers;
    for (const std::size_t count : {1U, 1000U, 100'000U}) {  // the last: more than one chunk
      for (const float first : {1.0F, 500.0F}) {
        auto& buffer = buffers.emplace_back(counting(count, rank == 0 ? first : 0.0F));
        ASSERT_EQ(rank == 0 ? ncclSend(buffer.get(), count, ncclFloat32, 1, comm, stream)
                            : ncclRecv(buffer.get(), count, ncclFloat32, 0, comm, stream),
                  ncclSuccess);
      }
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(buffers[buffers.size() - 2].read(), counting(count, 1.0F));
      EXPECT_EQ(buffers.back().read(), counting(count, 500.0F));
    }
  });
}

TEST_F(Nccl, AGroupExchangesWithoutADeadlock) {
  with_comms(3, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    const longhaul::testing::BufferOf<float> mine{counting(50'000, static_cast<float>(rank))};
    const longhaul::testing::BufferOf<float> theirs{std::vector<float>(50'000)};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclSend(mine.get(), 50'000, ncclFloat32, (rank + 1) % 3, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclRecv(theirs.get(), 50'000, ncclFloat32, (rank + 2) % 3, comm, stream),
              ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(theirs.read(), counting(50'000, static_cast<float>((rank + 2) % 3)));
  });
}

TEST_F(Nccl, ASendWaitsForItsReceive) {
  with_comms(2, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    static std::atomic<bool> received{false};
    const longhaul::testing::BufferOf<float> buffer{std::vector<float>(1)};
    if (rank == 0) {
      ASSERT_EQ(ncclSend(buffer.get(), 1, ncclFloat32, 1, comm, stream), ncclSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_TRUE(received);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
      received = true;
      ASSERT_EQ(ncclRecv(buffer.get(), 1, ncclFloat32, 0, comm, stream), ncclSuccess);
    }
  });
}

TEST_F(Nccl, CollectivesSumAndGather) {
  with_comms(3, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    const std::size_t count = 40'000;  // more than one chunk
    const auto from = static_cast<float>(rank);
    const longhaul::testing::BufferOf<float> mine{counting(3 * count, from)},
        sum{std::vector<float>(3 * count)};
    const longhaul::testing::BufferOf<float> part{std::vector<float>(count)},
        all{std::vector<float>(9 * count)};
    ASSERT_EQ(ncclAllReduce(mine.get(), sum.get(), 3 * count, ncclFloat32, ncclSum, comm, stream),
              ncclSuccess);
    ASSERT_EQ(ncclReduceScatter(mine.get(), part.get(), count, ncclFloat32, ncclSum, comm, stream),
              ncclSuccess);
    ASSERT_EQ(ncclAllGather(mine.get(), all.get(), 3 * count, ncclFloat32, comm, stream),
              ncclSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const auto sums = sum.read(), parts = part.read(), gathered = all.read();
    for (std::size_t i = 0; i < 3 * count; ++i)
      ASSERT_EQ(sums[i], 3 * static_cast<float>(i) + 3.0F) << i;
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(parts[i], sums[static_cast<std::size_t>(rank) * count + i]) << i;
    for (std::size_t i = 0; i < 9 * count; ++i)
      ASSERT_EQ(gathered[i], static_cast<float>(i % (3 * count) + i / (3 * count))) << i;
  });
}

TEST_F(Nccl, SumsOtherTypesToo) {
  with_comms(2, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    const longhaul::testing::BufferOf<std::int64_t> wide{{1LL << 40, rank}};
    const longhaul::testing::BufferOf<__nv_bfloat16> narrow{{1.5F, 256.0F}};
    ASSERT_EQ(ncclAllReduce(wide.get(), wide.get(), 2, ncclInt64, ncclSum, comm, stream),
              ncclSuccess);
    ASSERT_EQ(ncclAllReduce(narrow.get(), narrow.get(), 2, ncclBfloat16, ncclSum, comm, stream),
              ncclSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(wide.read(), (std::vector<std::int64_t>{1LL << 41, 1}));
    EXPECT_EQ(static_cast<float>(narrow.read()[0]), 3.0F);
    EXPECT_EQ(static_cast<float>(narrow.read()[1]), 512.0F);
  });
}

TEST_F(Nccl, RefusesTwoRanksOnOneDevice) {
  unsetenv("LONGHAUL_ON_HOST_NCCL_SHARED_DEVICE");
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  on_ranks(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclInvalidUsage);
    EXPECT_STREQ(ncclGetLastError(comm),
                 "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 0");
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
}

// Every rank closes the id's file, and among threads its number is soon another file's.
TEST(NcclWorld, ClosesTheFileOfAnIdOnce) {
  using longhaul::on_host::SharedWorld;
  const longhaul::on_host::SharedWorld::Id first = longhaul::on_host::SharedWorld::make_id();
  longhaul::on_host::SharedWorld::close_id(first);
  const longhaul::on_host::SharedWorld::Id second = longhaul::on_host::SharedWorld::make_id();
  longhaul::on_host::SharedWorld::close_id(first);
  EXPECT_TRUE((longhaul::on_host::SharedWorld{second, 1}.is_open()));
  longhaul::on_host::SharedWorld::close_id(second);
}

/// Waits for what a communicator that does not block says.
ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return state;
}

TEST_F(Nccl, APeerThatAbortsIsAnErrorUntilOneAbortsToo) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  on_ranks(2, [&](int rank) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, &config), ncclInProgress);
    ASSERT_EQ(settled(comm), ncclSuccess);
    const longhaul::testing::StreamOf stream;
    const longhaul::testing::BufferOf<float> buffer{std::vector<float>(1)};
    if (rank == 0) {
      ASSERT_EQ(ncclRecv(buffer.get(), 1, ncclFloat32, 1, comm, stream.get()), ncclSuccess);
      ncclResult_t state = ncclSuccess;
      while (state == ncclSuccess) ncclCommGetAsyncError(comm, &state);
      EXPECT_EQ(state, ncclRemoteError);
      EXPECT_EQ(cudaStreamQuery(stream.get()), cudaErrorNotReady);
    }
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  });
}

}  // namespace
