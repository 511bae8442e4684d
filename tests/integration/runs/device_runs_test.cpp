// Whole runs of bench_pipeline over the transports of GPUs, on the emulator: well, refused, faulty.
#include <gmock/gmock.h>

#include "integration/runs/bench_pipeline_fixture.hpp"
#include "integration/runs/two_by_two.hpp"

namespace longhaul::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class DeviceRuns : public BenchPipeline {
protected:
  /// Each rank has a GPU, or all share one.
  static void give_gpus(const char* count) { setenv("LONGHAUL_ON_HOST_DEVICES", count, 1); }
  int run_over(const std::string& transport, std::vector<std::string> options) {
    std::vector<std::string> all{"--schedule", "1f1b", "--iterations", "2",      "--device", "cuda",
                                 "--deadline", "5s",   "--transport",  transport};
    all.insert(all.end(), options.begin(), options.end());
    return run(4, std::move(all));
  }
};

TEST_F(DeviceRuns, EveryTransportCarriesAllMessages) {
  give_gpus("4");
  for (const char* transport : {"mpi", "cuda-ipc", "nccl"}) {
    out_ = transport;
    ASSERT_EQ(run_over(transport, {"--out", out()}), 0) << output();
    EXPECT_EQ(record()["schedules"][0]["check"], "ok");
    EXPECT_EQ(record()["environment"]["transport"]["name"], transport);
    EXPECT_EQ(record()["environment"]["transport"]["why"], "asked for");
  }
}

TEST_F(DeviceRuns, RanksThatShareAGpuAreNamedAndNcclRefused) {
  give_gpus("1");
  EXPECT_EQ(run_over("nccl", {}), 2);
  EXPECT_THAT(output(), HasSubstr("ranks 0, 1, 2 and 3 share GPU-"));
  EXPECT_THAT(output(), HasSubstr("cuda-ipc"));
}

// No rank is gone, and only the communicator knows: the run ends, and says with which message.
TEST_F(DeviceRuns, AnErrorThatNcclFindsLaterEndsTheRun) {
  give_gpus("4");
  setenv("LONGHAUL_ON_HOST_NCCL_ERROR", "1:3", 1);
  const int code = run_over("nccl", {});
  unsetenv("LONGHAUL_ON_HOST_NCCL_ERROR");
  EXPECT_EQ(code, 3);
  EXPECT_THAT(output(), HasSubstr("the run ends: rank 1: its transport failed in rank 1 (west, "));
  EXPECT_THAT(output(), ContainsRegex("(send|receive) of [FB]\\(chunk .* (to|from) rank [02]: "
                                      "the communicator for payloads from rank"));
  EXPECT_THAT(output(), HasSubstr("NCCL: unhandled system error (an error made up for a test)"));
  EXPECT_EQ(output().find(" is gone"), std::string::npos) << output();
  EXPECT_LT(seconds_, 30);
}

// NCCL says so by its asynchronous error: the run ends with that, or with who is gone.
TEST_F(DeviceRuns, ADeadPeerEndsTheRun) {
  give_gpus("4");
  for (const char* transport : {"mpi", "cuda-ipc", "nccl"}) {
    EXPECT_NE(run_over(transport, {"--fault", "kill@1:4"}), 0);
    EXPECT_THAT(output(), HasSubstr("the run ends: rank 1 is gone")) << transport;
    EXPECT_LT(seconds_, 30);
  }
}

/// Real operators on one GPU that threads share: what came late on a stream would be a wrong
/// number.
class RealOverlapsOnDevice : public DeviceRuns {
protected:
  RealOverlapsOnDevice() {
    write_scenario(kTwoByTwo);
    give_gpus("1");
    setenv("LONGHAUL_ON_HOST_DELAYS", "5", 1);
  }
  ~RealOverlapsOnDevice() override { unsetenv("LONGHAUL_ON_HOST_DELAYS"); }
  int run_real(const char* schedule, const char* overlaps, std::vector<std::string> options) {
    options.insert(options.begin(), {"--compute", "real", "--device", "cuda", "--schedule",
                                     schedule, "--overlap", overlaps, "--ranks-per-process", "4"});
    return run(1, std::move(options));
  }
};

TEST_F(RealOverlapsOnDevice, ComputeWhatOneRankComputes) {
  ASSERT_EQ(run_real("gpipe", "serial,ddp,zero1,zero3,fsdp2,megatron,zeropp", {"--out", out()}), 0)
      << output();
  EXPECT_THAT(output(), HasSubstr("held against one rank (0.01 is allowed)"));
  for (const nlohmann::json& row : record()["schedules"]) {
    EXPECT_EQ(row["check"], "ok") << row["schedule"];
    EXPECT_EQ(row["real"]["iterations_checked"], 3) << row["schedule"];
  }
}

TEST_F(RealOverlapsOnDevice, HandOnWhatStagesSendEachOther) {
  EXPECT_EQ(run_real("1f1b,zb-h1", "serial,ddp",
                     {"--set", "parallel.stages=2", "--set", "parallel.replicas=1", "--set",
                      "parallel.shard=1", "--set", "parallel.gradient_sync=all-reduce"}),
            0)
      << output();
}

TEST_F(RealOverlapsOnDevice, ShowWhatIsHurt) {
  for (const char* fault : {"swap@1:0:1", "corrupt@1:0:1"}) {
    EXPECT_EQ(run_real("gpipe", "zero3",
                       {"--fault", fault, "--set", "parallel.tensor=1", "--set",
                        "parallel.replicas=4", "--set", "parallel.shard=4"}),
              1)
        << fault << '\n'
        << output();
    EXPECT_THAT(output(), HasSubstr("wrong tensor")) << fault;
  }
}

}  // namespace
}  // namespace longhaul::testing
