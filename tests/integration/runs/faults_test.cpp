// Whole runs of bench_pipeline with faults on purpose: they must end in time, say who was where,
// and lose no finished iteration.
#include <csignal>

#include "base/random.hpp"
#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class FaultsTest : public BenchPipeline {};

TEST_F(FaultsTest, ARankThatNeverPostsItsReceiveEndsTheRunInTime) {
  for (const char* comm : {"decoupled", "grouped"}) {
    EXPECT_NE(run(4, {"--schedule", "1f1b", "--iterations", "3", "--deadline", "2s", "--comm", comm,
                      "--fault", "norecv@2:12:1"}),
              0);
    EXPECT_LT(seconds_, 12 + 3) << "deadline, 10 s, and starting up";
    const std::string text = output();
    EXPECT_THAT(text, HasSubstr("no progress"));
    EXPECT_THAT(text, AllOf(HasSubstr("rank 0"), HasSubstr("rank 1"), HasSubstr("rank 2"),
                            HasSubstr("rank 3")));
    EXPECT_THAT(text, HasSubstr("waits for: rank 2 (east, stage 2): receive of"));
    EXPECT_THAT(text, HasSubstr("from rank 1, which it has not posted"));
    EXPECT_EQ(text.find("the run ends"), text.rfind("the run ends")) << "one report";
  }
}

TEST_F(FaultsTest, AKilledRankIsNamedWithItsLastOp) {
  EXPECT_NE(run(4, {"--schedule", "1f1b", "--iterations", "3", "--deadline", "2s", "--out", out(),
                    "--fault", "kill@1:4:2"}),
            0);
  EXPECT_LT(seconds_, 15);
  EXPECT_THAT(output(), HasSubstr("the run ends: rank 1 is gone (killed or crashed), last started: "
                                  "rank 1 (west"));
  EXPECT_THAT(output(), HasSubstr("rank 1 (gone)"));
  expect_readable(2);
}

TEST_F(FaultsTest, AFrozenRankIsNamed) {
  EXPECT_NE(run(4, {"--schedule", "1f1b", "--iterations", "3", "--deadline", "2s", "--out", out(),
                    "--fault", "freeze@3:5:1"}),
            0);
  EXPECT_LT(seconds_, 15);
  EXPECT_THAT(output(),
              AllOf(HasSubstr("the run ends: rank 3 is stopped"), HasSubstr("rank 3 (stopped)")));
  expect_readable(1);
}

TEST_F(FaultsTest, ASignalEndsTheRunWithAReportAndItsOwnCode) {
  for (const auto& [signal, name] :
       {std::pair{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}}) {
    std::filesystem::remove_all(out());
    start(4, {"--schedule", "1f1b", "--iterations", "100000", "--out", out()});
    const std::size_t finished = wait_for_iterations(2);
    kill(child_, signal);
    const auto asked = Clock::now();
    EXPECT_EQ(finish(), 128 + signal) << "not 1, as where a check failed: " << output();
    EXPECT_LT(Clock::now() - asked, 10s);
    // mpirun tells its ranks by SIGTERM, whatever it was told by.
    EXPECT_THAT(output(), AllOf(HasSubstr("SIGTERM"), HasSubstr("rank 0"), HasSubstr("rank 3")))
        << name;
    EXPECT_EQ(output().find(" is gone"), std::string::npos) << "all were told alike: " << output();
    expect_readable(finished);
    EXPECT_THAT(output(), HasSubstr(" of 100000 iterations are kept; --resume goes on"));
  }
}

TEST_F(FaultsTest, ASignalToOneRankEndsTheRunWithItsCode) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    std::filesystem::remove_all(out());
    start(4, {"--schedule", "1f1b", "--iterations", "100000", "--out", out()});
    (void)wait_for_iterations(2);
    const std::vector<int> pids = rank_pids();
    ASSERT_EQ(pids.size(), 4u) << output();
    kill(pids[1], signal);
    EXPECT_EQ(finish(), 128 + signal) << output();
    EXPECT_THAT(output(), HasSubstr("was told to end (signal "));
  }
}

TEST_F(FaultsTest, WithoutOutNothingIsSaidToBeKept) {
  start(4, {"--schedule", "1f1b", "--iterations", "1000000"});
  std::this_thread::sleep_for(3s);
  kill(child_, SIGTERM);
  EXPECT_EQ(finish(), 128 + SIGTERM) << output();
  EXPECT_EQ(output().find("are kept"), std::string::npos) << output();
}

TEST_F(FaultsTest, KilledOrFrozenAtRandomTimesARunEndsAndLosesNoFinishedIteration) {
  Random random{20240601};
  for (int trial = 0; trial < 6; ++trial) {
    std::filesystem::remove_all(out());
    start(4, {"--schedule", "1f1b", "--iterations", "100000", "--deadline", "1s", "--out", out()});
    (void)wait_for_iterations(1);
    std::this_thread::sleep_for(std::chrono::microseconds{random.between(0, 300'000)});
    const std::size_t finished = trace::finished_iterations(out()).size();
    const std::vector<int> pids = rank_pids();
    ASSERT_EQ(pids.size(), 4u) << output();
    const char* const state = trial % 2 == 0 ? " is gone (killed" : " is stopped";
    kill(pids[static_cast<std::size_t>(random.between(0, 3))], trial % 2 == 0 ? SIGKILL : SIGSTOP);
    const auto stopped_at = Clock::now();
    EXPECT_NE(finish(), 0);
    EXPECT_LT(Clock::now() - stopped_at, 1s + 10s) << output();
    EXPECT_THAT(output(), AllOf(HasSubstr("the run ends: rank "), HasSubstr(state)));
    expect_readable(finished);
  }
}

TEST_F(FaultsTest, ARankStoppedWhileTheOthersMeetEndsTheRunInTime) {
  start(4, {"--schedule", "1f1b", "--iterations", "100000", "--deadline", "1s", "--out", out()});
  // The trace's first file is written by rank 0 while the others wait for its word.
  while (!std::filesystem::exists(out() + "/run.h5") && waitpid(child_, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(200us);
  for (const int pid : rank_pids()) {
    kill(pid, SIGSTOP);
    break;
  }
  const auto stopped_at = Clock::now();
  EXPECT_NE(finish(), 0);
  EXPECT_LT(Clock::now() - stopped_at, 1s + 10s) << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("the run ends: rank "), HasSubstr(" is stopped")));
}

/// A collective on the machine as it is, where no engine looks around.
TEST_F(FaultsTest, ARankStoppedInACollectiveAtFullSpeedEndsTheRunInTime) {
  program_ = {LONGHAUL_BENCH_COLLECTIVES};
  for (const char* calls : {"messages", "shared"}) {
    start(4, {scenario(), "--kind", "all-reduce", "--bytes", "4MiB", "--algorithm", "ring",
              "--emulate", "off", "--collectives", calls, "--iterations", "100000", "--deadline",
              "1s"});
    std::this_thread::sleep_for(3s);
    const std::vector<int> pids = rank_pids();
    ASSERT_EQ(pids.size(), 4u) << output();
    kill(pids[2], SIGSTOP);
    const auto stopped_at = Clock::now();
    EXPECT_EQ(finish(), 3) << output();
    EXPECT_LT(Clock::now() - stopped_at, 6s + 10s) << output();
    EXPECT_THAT(output(), AllOf(HasSubstr("the run ends: rank "),
                                HasSubstr(" is stopped (frozen, SIGSTOP)")));
  }
}

/// A rank is stopped as soon as its program is there: long before it has met the others.
TEST_F(FaultsTest, ARankFrozenInsideMpiInitEndsTheRunAtTheDeadline) {
  start(4, {"--schedule", "1f1b", "--iterations", "1", "--deadline", "1s"});
  std::vector<int> pids;
  while (pids.empty() && waitpid(child_, nullptr, WNOHANG) == 0) {
    pids = rank_pids();
    std::erase_if(pids, [](int pid) {
      const std::string words = file_text("/proc/" + std::to_string(pid) + "/cmdline");
      return !words.starts_with(LONGHAUL_BENCH_PIPELINE);
    });
    std::this_thread::sleep_for(100us);
  }
  ASSERT_FALSE(pids.empty()) << output();
  kill(pids.front(), SIGSTOP);
  const auto stopped_at = Clock::now();
  EXPECT_EQ(finish(), 3) << output();
  EXPECT_LT(Clock::now() - stopped_at, 1s + 30s + 15s) << output();
  EXPECT_THAT(output(), HasSubstr("for the ranks to start (MPI_Init) (a rank is dead or stopped)"));
}

TEST_F(FaultsTest, AFaultThatNeverStruckSaysSo) {
  for (const char* fault : {"corrupt@1:900:0", "corrupt@1:0:7", "kill@9:0:0"}) {
    EXPECT_EQ(
        run(4, {"--schedule", "1f1b", "--iterations", "1", "--warmup", "1", "--fault", fault}), 0)
        << output();
    EXPECT_THAT(output(), HasSubstr(std::string{"--fault "} + fault + " never struck"));
  }
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "1", "--payload", "1KiB", "--fault",
                    "corrupt@1:0:0"}),
            1);
  EXPECT_EQ(output().find("never struck"), std::string::npos) << output();
}

/// The check column has to see each of them. Payloads are small: MPI takes a large one only when it
/// is received, so that a copy without a receive would never leave.
TEST_F(FaultsTest, MessagesThatAreHurtAreSeen) {
  struct Case {
    const char* fault;
    const char* check;
  };
  for (const auto& [fault, check] :
       {Case{"corrupt@1:0:1", "1 corrupted"}, Case{"mixup@1:2:0", "1 mixed up"},
        Case{"twice@1:0:0", "1 mixed up, 2 unclaimed"}, Case{"twice@1:0:1", "2 unclaimed"}}) {
    for (const char* comm : {"decoupled", "grouped"}) {
      EXPECT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "2", "--warmup", "0", "--comm", comm,
                        "--payload", "1KiB", "--fault", fault}),
                1)
          << fault;
      EXPECT_THAT(output(), HasSubstr(check)) << fault << ", " << comm;
    }
  }
}

TEST_F(FaultsTest, ALostMessageEndsTheRunWithItsReceive) {
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "2", "--deadline", "1s", "--fault",
                    "lose@1:0:1"}),
            3);
  EXPECT_LT(seconds_, 1 + 10);
  EXPECT_THAT(output(), AllOf(HasSubstr("no progress"), HasSubstr("waits for: rank"),
                              HasSubstr("from rank 1")));
}

}  // namespace
}  // namespace longhaul::testing
