#include "comm/registry/transports.hpp"

#include <gmock/gmock.h>

#include "base/error.hpp"

namespace longhaul::comm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

PayloadPlace on_cpu(int host) { return {host, std::string(1, static_cast<char>('a' + host)), ""}; }
PayloadPlace on_gpu(int host, int gpu) {
  PayloadPlace place = on_cpu(host);
  place.gpu = "GPU-" + place.host_name + std::to_string(gpu);
  return place;
}

const std::vector<PayloadPlace> kCpus{on_cpu(0), on_cpu(0)};
const std::vector<PayloadPlace> kOwnGpus{on_gpu(0, 0), on_gpu(0, 1)};
const std::vector<PayloadPlace> kOwnGpusOfTwoHosts{on_gpu(0, 0), on_gpu(0, 1), on_gpu(1, 0)};
const std::vector<PayloadPlace> kOneGpu{on_gpu(0, 0), on_gpu(0, 0), on_gpu(0, 0)};
const std::vector<PayloadPlace> kSharedOfTwoHosts{on_gpu(0, 0), on_gpu(0, 0), on_gpu(0, 1),
                                                  on_gpu(1, 0), on_gpu(1, 0)};
const std::vector<PayloadPlace> kMixed{on_gpu(0, 0), on_cpu(0)};

TEST(TransportChoiceTest, AutomaticTakesTheShortestWayThatAllRanksHave) {
  struct Case {
    const std::vector<PayloadPlace>& ranks;
    bool with_nccl;
    TransportKind kind;
    const char* why;
  };
  const std::vector<Case> cases{
      {kCpus, true, TransportKind::mpi, "memory"},
      {kMixed, true, TransportKind::mpi, "memory"},
      {kOwnGpus, true, TransportKind::nccl, "GPU to itself"},
      {kOwnGpus, false, TransportKind::cuda_ipc, "one host, and built without NCCL"},
      {kOwnGpusOfTwoHosts, true, TransportKind::nccl, "GPU to itself"},
      {kOwnGpusOfTwoHosts, false, TransportKind::mpi, "several hosts, and built without NCCL"},
      {kOneGpu, true, TransportKind::cuda_ipc, "ranks 0, 1 and 2 share GPU-a0 on a"},
      {kOneGpu, false, TransportKind::cuda_ipc, "share GPU-a0"},
      {kSharedOfTwoHosts, true, TransportKind::mpi, "several hosts, and ranks 0 and 1 share"},
  };
  for (const Case& each : cases) {
    const TransportChoice choice =
        choose_transport(TransportKind::automatic, each.ranks, each.with_nccl);
    EXPECT_EQ(choice.kind, each.kind) << each.why;
    EXPECT_THAT(choice.why, HasSubstr(each.why));
  }
}

TEST(TransportChoiceTest, WhatIsAskedForIsTakenWhereItCanBe) {
  struct Case {
    TransportKind asked;
    const std::vector<PayloadPlace>& ranks;
  };
  for (const Case& each : std::vector<Case>{{TransportKind::mpi, kCpus},
                                            {TransportKind::mpi, kSharedOfTwoHosts},
                                            {TransportKind::nccl, kOwnGpusOfTwoHosts},
                                            {TransportKind::cuda_ipc, kOneGpu},
                                            {TransportKind::cuda_ipc, kOwnGpus}}) {
    const TransportChoice choice = choose_transport(each.asked, each.ranks, true);
    EXPECT_EQ(choice.kind, each.asked);
    EXPECT_EQ(choice.why, "asked for");
  }
}

// GPUs of one host that cannot read each other's memory, by the driver's word.
TEST(TransportChoiceTest, GpusBeyondReachTakeAnotherWay) {
  std::vector<PayloadPlace> ranks = kOwnGpus;
  ranks[1].beyond_reach = {ranks[0].gpu};
  const TransportChoice choice = choose_transport(TransportKind::automatic, ranks, false);
  EXPECT_EQ(choice.kind, TransportKind::mpi);
  EXPECT_THAT(choice.why, HasSubstr("GPU-a1 of rank 1 cannot read the memory of GPU-a0, rank 0's"));
  EXPECT_EQ(choose_transport(TransportKind::automatic, ranks, true).kind, TransportKind::nccl);
  try {
    (void)choose_transport(TransportKind::cuda_ipc, ranks, true);
    FAIL() << "taken all the same";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cuda-ipc"), HasSubstr("GPU-a1 of rank 1"),
                                    HasSubstr("nccl or mpi")));
  }
  ranks[1] = on_gpu(1, 1);
  ranks[1].beyond_reach = {ranks[0].gpu};  // of another host's: the same name means nothing
  EXPECT_EQ(choose_transport(TransportKind::automatic, ranks, false).why.find("cannot read"),
            std::string::npos);
}

TEST(TransportChoiceTest, WhatCannotBeSaysWhyAndWhatToUse) {
  struct Case {
    TransportKind asked;
    const std::vector<PayloadPlace>& ranks;
    bool with_nccl;
    std::vector<const char*> words;
  };
  const std::vector<Case> cases{
      {TransportKind::nccl, kCpus, true, {"rank 0 on a", "--device cuda", "--transport mpi"}},
      {TransportKind::cuda_ipc, kMixed, true, {"rank 1 on a", "--device cuda"}},
      {TransportKind::nccl, kOwnGpus, false, {"without NCCL", "LONGHAUL_WITH_NCCL", "cuda-ipc"}},
      {TransportKind::nccl, kOwnGpusOfTwoHosts, false, {"use --transport mpi"}},
      {TransportKind::nccl,
       kOneGpu,
       true,
       {"ranks 0, 1 and 2 share GPU-a0 on a", "cuda-ipc or mpi", "--ranks-per-process"}},
      {TransportKind::nccl,
       kSharedOfTwoHosts,
       true,
       {"ranks 0 and 1 share GPU-a0 on a; ranks 3 and 4 share GPU-b0 on b", "Use --transport mpi"}},
      {TransportKind::cuda_ipc,
       kOwnGpusOfTwoHosts,
       true,
       {"rank 0 is on a, rank 2 on b", "nccl or mpi"}},
      {TransportKind::cuda_ipc, kSharedOfTwoHosts, true, {"rank 3 on b", "--transport mpi."}},
  };
  for (const Case& each : cases) {
    try {
      static_cast<void>(choose_transport(each.asked, each.ranks, each.with_nccl));
      FAIL() << to_string(each.asked) << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input);
      for (const char* word : each.words) EXPECT_THAT(error.what(), HasSubstr(word));
    }
  }
}

TEST(TransportChoiceTest, NamesAreReadAndWritten) {
  for (const char* name : {"auto", "mpi", "nccl", "cuda-ipc"})
    EXPECT_STREQ(to_string(transport_kind_of(name)), name);
  try {
    static_cast<void>(transport_kind_of("ipc"));
    FAIL() << "ipc was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("--transport ipc"), HasSubstr("cuda-ipc")));
  }
}

}  // namespace
}  // namespace longhaul::comm
