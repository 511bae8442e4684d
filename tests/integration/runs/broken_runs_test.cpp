// Whole runs of bench_pipeline whose rank, device, disk or launcher fails. Each ends by itself,
// says which and where, keeps every finished iteration, and can be resumed.
#include <csignal>

#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kFailed = 3;
constexpr int kKilled = 128 + SIGKILL;  // as mpirun reports a rank that was

class BrokenRuns : public BenchPipeline {
protected:
  [[nodiscard]] std::vector<std::string> words(std::vector<std::string> more,
                                               const char* deadline = "2s") const {
    std::vector<std::string> all{"--schedule", "1f1b", "--deadline", deadline, "--out", out()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// The same command goes on to the end.
  void expect_resumable(const std::vector<std::string>& command, int iterations) {
    auto again = command;
    again.push_back("--resume");
    ASSERT_EQ(run(4, again), 0) << output();
    EXPECT_EQ(record()["schedules"][0]["n"], iterations);
    EXPECT_EQ(record()["schedules"][0]["check"], "ok");
    EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
  }
};

TEST_F(BrokenRuns, ARankKilledInASend) {
  EXPECT_THAT(run(4, words({"--iterations", "3", "--fault", "kill@1:send2:1"})),
              AnyOf(kKilled, kFailed));
  EXPECT_THAT(output(), AllOf(HasSubstr("the run ends: rank 1 is gone (killed or crashed)"),
                              HasSubstr("send of ")));
  expect_readable(1);
  expect_resumable(words({"--iterations", "3"}), 3);
}

// Rank 1 sends 4 gradients, then the first step of its stage's all-gather.
TEST_F(BrokenRuns, ARankKilledInAStepOfACollective) {
  std::string text = kFourStages;
  text.replace(text.find("stages = 4"), 10, "stages = 2\nreplicas = 2");
  text.replace(text.find("stages = [0, 1]"), 15, "replicas = [0]");
  text.replace(text.find("stages = [2, 3]"), 15, "replicas = [1]");
  write_scenario(text);
  EXPECT_THAT(run(4, words({"--iterations", "3", "--fault", "kill@1:send4:1"})),
              AnyOf(kKilled, kFailed));
  EXPECT_THAT(output(), HasSubstr("the run ends: rank 1 is gone (killed or crashed), last started: "
                                  "rank 1 (west, stage 1, replica 0): send of step 0 of all-gather "
                                  "to rank 3"));
  expect_readable(1);
}

TEST_F(BrokenRuns, ARankKilledWhileItWritesItsRows) {
  EXPECT_THAT(run(4, words({"--iterations", "3", "--fault", "kill@0:write0:1"})),
              AnyOf(kKilled, kFailed));
  EXPECT_THAT(output(), HasSubstr("the run ends: rank 0 is gone (killed or crashed)"));
  EXPECT_EQ(trace::finished_iterations(out()).size(), 1u) << "half a file is none";
  expect_readable(1);
  expect_resumable(words({"--iterations", "3"}), 3);
}

TEST_F(BrokenRuns, ARankFrozenWhileItWritesItsRows) {
  EXPECT_THAT(run(4, words({"--iterations", "3", "--fault", "freeze@0:write0:1"})),
              AnyOf(kKilled, kFailed));
  EXPECT_THAT(output(), HasSubstr("the run ends: rank 0 is stopped (frozen, SIGSTOP)"));
  expect_readable(1);
}

/// Half of the ranks stop at once, as those of a node do.
TEST_F(BrokenRuns, ANodeFrozenForLongerThanTheDeadline) {
  start(4, words({"--iterations", "100000"}));
  const std::size_t finished = wait_for_iterations(2);
  const std::vector<int> pids = rank_pids();
  ASSERT_EQ(pids.size(), 4u) << output();
  kill(pids[2], SIGSTOP);
  kill(pids[3], SIGSTOP);
  EXPECT_THAT(finish(), AnyOf(kKilled, kFailed));
  const std::string text = output();
  const std::size_t first = text.find(" is stopped (frozen, SIGSTOP)");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find(" is stopped (frozen, SIGSTOP)", first + 1), std::string::npos) << text;
  expect_readable(finished);
}

TEST_F(BrokenRuns, ARankFrozenForLessThanTheDeadlineGoesOn) {
  start(4, words({"--iterations", "30"}, "20s"));
  for (int i = 0; i < 2; ++i) {
    (void)wait_for_iterations(static_cast<std::size_t>(3 + 5 * i));
    const std::vector<int> pids = rank_pids();
    ASSERT_EQ(pids.size(), 4u) << output();
    std::this_thread::sleep_for(20ms);  // into the next iteration, of 56 ms
    kill(pids[2], SIGSTOP);
    std::this_thread::sleep_for(400ms);
    kill(pids[2], SIGCONT);
  }
  EXPECT_EQ(finish(), 0) << output();
  EXPECT_THAT(output(), Not(HasSubstr("the run ends")));
  EXPECT_EQ(record()["schedules"][0]["check"], "ok");
  EXPECT_GT(record()["schedules"][0]["measured_p95_ns"], 300'000'000) << "it is not hidden";
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
}

TEST_F(BrokenRuns, ADeviceThatFailsIsNamedWithItsOp) {
  EXPECT_EQ(run(4, words({"--iterations", "3", "--fault", "device@2:3:1"})), kFailed);
  EXPECT_THAT(output(), HasSubstr("the run ends: rank 2: its device failed in rank 2 (east, stage "
                                  "2): "));
  EXPECT_THAT(output(), HasSubstr("error 719"));
  EXPECT_EQ(output().find("the run ends"), output().rfind("the run ends")) << "one report";
  expect_readable(1);
  expect_resumable(words({"--iterations", "3"}), 3);
}

TEST_F(BrokenRuns, MpirunKilled) {
  const auto command = words({"--iterations", "40"});
  start(4, command);
  const std::size_t finished = wait_for_iterations(2);
  kill(child_, SIGKILL);
  EXPECT_EQ(finish(), kKilled);
  EXPECT_TRUE(wait_for_no_process());
  std::string report;  // stderr led through mpirun
  for (const auto& entry : std::filesystem::directory_iterator{out()})
    if (entry.path().filename().string().starts_with("report.")) report += file_text(entry.path());
  EXPECT_THAT(report, AllOf(HasSubstr("has lost its launcher"), HasSubstr("rank 3 ")));
  expect_readable(finished);
  expect_resumable(command, 40);
}

TEST_F(BrokenRuns, DiskFull) {
  const SmallDisk disk{scratch_.path() / "disk"};
  if (!disk.is_there()) GTEST_SKIP() << kNoMount;
  out_ = "disk/out";
  const auto command = words({"--iterations", "40"});
  EXPECT_EQ(run(4, command), kFailed) << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("cannot write "), HasSubstr("space")));
  expect_readable(1);
  disk.grow();
  expect_resumable(command, 40);
}

/// Nothing is thrown away with it: the run says so, and goes on from what is left.
TEST_F(BrokenRuns, ASegmentThatIsDamagedMeanwhile) {
  const auto command = words({"--iterations", "20"});
  start(4, command);
  (void)wait_for_iterations(2);
  std::filesystem::resize_file(out() + "/segment.0.0.0+4.h5", 100);
  EXPECT_EQ(finish(), kFailed) << output();
  EXPECT_THAT(output(), HasSubstr("lacks 1 of the iterations"));
  EXPECT_FALSE(std::filesystem::exists(out() + "/record.json"));
  EXPECT_EQ(trace::merge_run(out()).measured.rows.front().iteration, 1)
      << "the others are readable";
  expect_resumable(command, 20);
}

TEST_F(BrokenRuns, ReadOnlyOut) {
  out_ = "disk/out";
  const SmallDisk disk{scratch_.path() / "disk"};
  if (!disk.is_there()) GTEST_SKIP() << kNoMount;
  disk.forbid_writing();
  EXPECT_EQ(run(4, words({"--iterations", "2"})), 2);
  EXPECT_THAT(output(), HasSubstr("Read-only file system"));
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(BrokenRuns, NamesThatAreNoUtf8) {
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "2", "--out", out() + "\xff"}), 2);
  EXPECT_THAT(output(), HasSubstr("is no UTF-8"));
}

/// No user, not even root, can make a directory there.
TEST_F(BrokenRuns, OutThatCannotBeMade) {
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "2", "--out", "/proc/no-such/out"}), 2);
  EXPECT_THAT(output(), HasSubstr("/proc/no-such/out"));
}

}  // namespace
}  // namespace longhaul::testing
