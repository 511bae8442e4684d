// Whole runs of bench_pipeline, from outside: what goes well, what is refused, and what is hurt on
// purpose must end in time, say who was where, and lose no finished iteration.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.hpp"
#include "trace/trace_file.hpp"

namespace longhaul {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

constexpr const char* kScenario = R"([scenario]
name = "four"
[costs]
forward = "2ms"
dgrad = "2ms"
wgrad = "2ms"
activation = "2MiB"
message = "1MiB"
weights = "1MiB"
[parallel]
stages = 4
microbatches = 4
[[datacenter]]
name = "west"
stages = [0, 1]
[[datacenter]]
name = "east"
stages = [2, 3]
[[link]]
between = ["west", "east"]
latency = "2ms"
bandwidth = "8Gbps"
)";

class FaultsTest : public ::testing::Test {
protected:
  FaultsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "longhaul-faults-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    std::ofstream{directory_ / "four.toml"} << kScenario;
  }
  ~FaultsTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  /// Starts bench_pipeline on the scenario; its output goes to a file.
  void start(int ranks, std::vector<std::string> options) {
    std::vector<std::string> words{LONGHAUL_MPI_SCRIPT, "-n", std::to_string(ranks),
                                   LONGHAUL_BENCH_PIPELINE, (directory_ / "four.toml").string()};
    words.insert(words.end(), options.begin(), options.end());
    output_ = directory_ / ("output-" + std::to_string(++runs_));
    begin_ = Clock::now();
    child_ = fork();
    if (child_ != 0) return;
    if (freopen(output_.c_str(), "w", stdout) == nullptr) _exit(126);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(arguments.front(), arguments.data());
    _exit(127);
  }
  /// Waits for its end; the exit code, or 128 + signal.
  int finish() {
    int status = 0;
    waitpid(child_, &status, 0);
    seconds_ = std::chrono::duration<double>(Clock::now() - begin_).count();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int run(int ranks, std::vector<std::string> options) {
    start(ranks, std::move(options));
    return finish();
  }
  [[nodiscard]] std::string output() const {
    std::ostringstream text;
    text << std::ifstream{output_}.rdbuf();
    return text.str();
  }
  [[nodiscard]] std::string out() const { return (directory_ / "out").string(); }

  /// Waits until `count` iterations are finished, or the run has ended.
  [[nodiscard]] std::size_t wait_for_iterations(std::size_t count) const {
    for (int i = 0; i < 6000; ++i) {
      if (std::filesystem::exists(out() + "/run.h5") && finished_iterations(out()).size() >= count)
        break;
      std::this_thread::sleep_for(5ms);
    }
    return finished_iterations(out()).size();
  }
  /// Processes of the ranks.
  [[nodiscard]] std::vector<int> rank_pids() const {
    std::vector<int> pids;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream stat{entry.path() / "stat"};
      std::string line;
      std::getline(stat, line);
      const std::size_t at = line.rfind(')');
      if (at == std::string::npos) continue;
      std::istringstream rest{line.substr(at + 2)};
      char state = 0;
      int parent = 0;
      rest >> state >> parent;
      if (parent == child_) pids.push_back(std::stoi(name));
    }
    return pids;
  }
  /// What a killed run left can be read, and holds every iteration that was finished.
  void expect_readable(std::size_t at_least) const {
    const auto finished = finished_iterations(out());
    EXPECT_GE(finished.size(), at_least);
    const Trace trace = merge_run(out());
    std::vector<std::int32_t> iterations;
    for (const TimelineRow& row : trace.measured.rows)
      if (iterations.empty() || iterations.back() != row.iteration)
        iterations.push_back(row.iteration);
    EXPECT_EQ(iterations.size(), finished.size());
    const std::filesystem::path merged = directory_ / "merged.h5";
    write_trace(merged, trace);
    EXPECT_THAT(validate_trace(merged), IsEmpty());
    std::filesystem::remove(merged);
  }

  std::filesystem::path directory_, output_;
  int child_ = 0;
  int runs_ = 0;
  Clock::time_point begin_;
  double seconds_ = 0;
};

TEST_F(FaultsTest, AGoodRunLeavesARecordAndATraceThatValidates) {
  for (const char* comm : {"decoupled", "grouped"}) {
    std::filesystem::remove_all(out());
    ASSERT_EQ(
        run(4, {"--schedule", "1f1b,zb-h1", "--iterations", "2", "--comm", comm, "--out", out()}),
        0)
        << output();
    EXPECT_THAT(output(), AllOf(HasSubstr("1f1b"), HasSubstr("zb-h1"), HasSubstr("ok")));
    EXPECT_TRUE(std::filesystem::exists(out() + "/record.json"));
    EXPECT_THAT(validate_trace(out() + "/trace.h5"), IsEmpty());
    const Trace trace = read_trace(out() + "/trace.h5");
    EXPECT_EQ(trace.measured.rows.size(), 2 * trace.predicted.rows.size());
  }
}

TEST_F(FaultsTest, NothingIsOverwritten) {
  std::filesystem::create_directory(out());
  std::ofstream{out() + "/precious"} << "work of a night";
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "1", "--out", out()}), 2);
  EXPECT_THAT(output(), HasSubstr("not empty"));
  std::ifstream kept{out() + "/precious"};
  std::string text;
  std::getline(kept, text);
  EXPECT_EQ(text, "work of a night");
}

TEST_F(FaultsTest, BadInputIsOneMessageAndExitCode2) {
  const std::vector<std::vector<std::string>> slips{
      {"--schedule", "1f1c"},         {"--comm", "coupled"}, {"--emulate", "maybe"},
      {"--set", "link.latency=40"},   {"--deadline", "0s"},  {"--payload", "1"},
      {"--schedule", "/no/such.csv"}, {"--iterations", "0"}, {"--nonsense"}};
  for (const auto& slip : slips) {
    EXPECT_EQ(run(4, slip), 2) << slip.front();
    const std::string text = output();
    const std::size_t at = text.find("longhaul: ");
    EXPECT_NE(at, std::string::npos) << text;
    EXPECT_EQ(text.find("longhaul: ", at + 1), std::string::npos) << text;
    EXPECT_LT(seconds_, 20);
  }
}

TEST_F(FaultsTest, TheNumberOfRanksIsNamed) {
  EXPECT_EQ(run(2, {"--schedule", "1f1b"}), 2);
  EXPECT_THAT(output(), AllOf(HasSubstr("needs 4 ranks"), HasSubstr("scripts/mpi -n 4")));
}

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
  EXPECT_THAT(output(), AllOf(HasSubstr("rank 1 (gone)"), HasSubstr("last started: rank 1 (west")));
  expect_readable(2);
}

TEST_F(FaultsTest, AFrozenRankIsNamed) {
  EXPECT_NE(run(4, {"--schedule", "1f1b", "--iterations", "3", "--deadline", "2s", "--out", out(),
                    "--fault", "freeze@3:5:1"}),
            0);
  EXPECT_LT(seconds_, 15);
  EXPECT_THAT(output(), HasSubstr("rank 3 (stopped)"));
  expect_readable(1);
}

TEST_F(FaultsTest, TermToMpirunEndsTheRunWithAReport) {
  start(4, {"--schedule", "1f1b", "--iterations", "100000", "--out", out()});
  const std::size_t finished = wait_for_iterations(2);
  kill(child_, SIGTERM);
  const auto asked = Clock::now();
  EXPECT_NE(finish(), 0);
  EXPECT_LT(Clock::now() - asked, 10s);
  EXPECT_THAT(output(), AllOf(HasSubstr("SIGTERM"), HasSubstr("rank 0"), HasSubstr("rank 3")));
  expect_readable(finished);
}

TEST_F(FaultsTest, KilledOrFrozenAtRandomTimesARunEndsAndLosesNoFinishedIteration) {
  Random random{20240601};
  for (int trial = 0; trial < 6; ++trial) {
    std::filesystem::remove_all(out());
    start(4, {"--schedule", "1f1b", "--iterations", "100000", "--deadline", "1s", "--out", out()});
    (void)wait_for_iterations(1);
    std::this_thread::sleep_for(std::chrono::microseconds{random.between(0, 300'000)});
    const std::size_t finished = finished_iterations(out()).size();
    const std::vector<int> pids = rank_pids();
    ASSERT_EQ(pids.size(), 4u) << output();
    kill(pids[static_cast<std::size_t>(random.between(0, 3))], trial % 2 == 0 ? SIGKILL : SIGSTOP);
    const auto hurt = Clock::now();
    EXPECT_NE(finish(), 0);
    EXPECT_LT(Clock::now() - hurt, 1s + 10s) << output();
    EXPECT_THAT(output(), HasSubstr("the run ends"));
    expect_readable(finished);
  }
}

}  // namespace
}  // namespace longhaul
