#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/file_text.hpp"
#include "trace/file/trace_file.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::testing {

/// Four stages in two datacenters.
inline constexpr const char* kFourStages = R"([scenario]
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

/// A file system of a few pages, for as long as this lives.
class SmallDisk {
public:
  /// `options` of the mount: its size.
  explicit SmallDisk(std::filesystem::path where, const char* options = "size=400k")
      : where_{std::move(where)} {
    std::filesystem::create_directory(where_);
    mounted_ = mount("tmpfs", where_.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(where_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool is_there() const { return mounted_; }
  void grow() const { remount(0, "size=64m"); }
  void forbid_writing() const { remount(MS_RDONLY, nullptr); }

private:
  void remount(unsigned long flags, const char* options) const {
    ASSERT_EQ(mount("tmpfs", where_.c_str(), "tmpfs", MS_REMOUNT | flags, options), 0)
        << strerror(errno);
  }
  std::filesystem::path where_;
  bool mounted_ = false;
};
inline constexpr const char* kNoMount = "no tmpfs can be mounted here (needs CAP_SYS_ADMIN)";

/// Runs bench_pipeline as a user does, and looks at what it prints and leaves.
class BenchPipeline : public ::testing::Test {
protected:
  BenchPipeline() { write_scenario(kFourStages); }
  void TearDown() override { EXPECT_TRUE(wait_for_no_process()) << "a rank is left"; }

  void write_scenario(const std::string& text) const {
    std::ofstream{scenario(), std::ios::trunc} << text;
  }
  [[nodiscard]] std::filesystem::path scenario() const { return scratch_.path() / "four.toml"; }

  /// Starts bench_pipeline on the scenario, or another program, as `processes` by mpirun (0: as one
  /// without it); its output goes to a file.
  void start(int processes, std::vector<std::string> options) {
    std::vector<std::string> words;
    if (processes > 0) words = {LONGHAUL_MPI_SCRIPT, "-n", std::to_string(processes)};
    words.insert(words.end(), program_.begin(), program_.end());
    words.insert(words.end(), options.begin(), options.end());
    output_ = scratch_.path() / ("output-" + std::to_string(++runs_));
    begin_ = std::chrono::steady_clock::now();
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
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int run(int processes, std::vector<std::string> options) {
    start(processes, std::move(options));
    return finish();
  }
  [[nodiscard]] std::string output() const { return file_text(output_); }
  /// Of the record: a value, so that a loop over it holds it.
  [[nodiscard]] nlohmann::json schedules() const { return record()["schedules"]; }
  [[nodiscard]] nlohmann::json record() const {
    return nlohmann::json::parse(std::ifstream{out() + "/record.json"});
  }
  [[nodiscard]] std::string out() const { return (scratch_.path() / out_).string(); }

  /// Waits until `count` iterations are finished, or the run has ended.
  [[nodiscard]] std::size_t wait_for_iterations(std::size_t count) const {
    for (int i = 0; i < 6000; ++i) {
      if (std::filesystem::exists(out() + "/run.h5") &&
          trace::finished_iterations(out()).size() >= count)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return trace::finished_iterations(out()).size();
  }
  /// Processes of the ranks: children of mpirun, which is one of the script's.
  [[nodiscard]] std::vector<int> rank_pids() const {
    const std::map<int, int> parents = parents_of_processes();
    std::vector<int> pids;
    for (const auto& [pid, parent] : parents) {
      const auto launcher = parents.find(parent);
      if (launcher != parents.end() && launcher->second == child_) pids.push_back(pid);
    }
    return pids;
  }
  [[nodiscard]] static std::map<int, int> parents_of_processes() {
    std::map<int, int> parents;
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
      parents[std::stoi(name)] = parent;
    }
    return parents;
  }
  /// Waits until no process works on the scenario, or beside it; false: some do not end.
  [[nodiscard]] bool wait_for_no_process() const {
    for (int i = 0; i < 500; ++i) {
      bool any = false;
      for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
        const std::string name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        std::ifstream words{entry.path() / "cmdline"};
        for (std::string word; std::getline(words, word, '\0');)
          any = any || word.starts_with(scratch_.path().string());
      }
      if (!any) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    return false;
  }
  /// The trace of a killed run can be read, and holds every iteration that was finished.
  void expect_readable(std::size_t at_least) const {
    const auto finished = trace::finished_iterations(out());
    EXPECT_GE(finished.size(), at_least);
    const trace::Trace trace = trace::merge_run(out());
    std::vector<std::int32_t> iterations;
    for (const TimelineRow& row : trace.measured.rows)
      if (iterations.empty() || iterations.back() != row.iteration)
        iterations.push_back(row.iteration);
    EXPECT_EQ(iterations.size(), finished.size());
    const std::filesystem::path merged = scratch_.path() / "merged.h5";
    trace::write_trace(merged, trace);
    EXPECT_THAT(trace::validate_trace(merged), ::testing::IsEmpty());
    std::filesystem::remove(merged);
  }

  ScratchDirectory scratch_;
  std::vector<std::string> program_{LONGHAUL_BENCH_PIPELINE, scenario().string()};
  std::filesystem::path out_ = "out";  ///< in the scratch directory
  std::filesystem::path output_;
  int child_ = 0;
  int runs_ = 0;
  std::chrono::steady_clock::time_point begin_;
  double seconds_ = 0;
};

}  // namespace longhaul::testing
