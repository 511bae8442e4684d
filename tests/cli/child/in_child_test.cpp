#include "cli/child/in_child.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/support.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr cli::ChildLimits kGenerous{std::uint64_t{8} << 30U, 60s, 60s};

/// The message when `command` runs in a child, and its exit code.
Outcome refused(const std::function<cli::Answer()>& command, cli::ChildLimits limits = kGenerous) {
  try {
    const cli::Answer answer = cli::in_child("a.h5", limits, command);
    return {static_cast<int>(answer.code), answer.text, ""};
  } catch (const Error& error) {
    return {static_cast<int>(error.code()), "", error.what()};
  }
}

cli::Answer crash(int signal) {
  std::signal(signal, SIG_DFL);  // sanitizers would print a report
  static_cast<void>(std::raise(signal));
  return {};
}

TEST(InChild, HandsOverAnswersAndErrors) {
  const std::string long_text(1'000'000, 'x');
  const Outcome answer = refused([&] { return cli::Answer{long_text, ExitCode::answer_is_no}; });
  EXPECT_EQ(answer.code, 1);
  EXPECT_EQ(answer.out, long_text);
  EXPECT_EQ(refused([] { return cli::Answer{}; }).code, 0);
  const Outcome error = refused([]() -> cli::Answer { throw Error{"no", ExitCode::run_failed}; });
  EXPECT_EQ(error.code, 3);
  EXPECT_EQ(error.err, "no");
  EXPECT_EQ(refused([]() -> cli::Answer { throw std::runtime_error{"odd"}; }).code, 3);
}

TEST(InChild, ChangesNothingInTheParent) {
  int value = 1;
  EXPECT_EQ(refused([&] { return cli::Answer{std::to_string(++value)}; }).out, "2");
  EXPECT_EQ(value, 1);
}

TEST(InChild, ACrashIsBadInput) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGKILL}) {
    const Outcome outcome = refused([&] { return crash(signal); });
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("a.h5: cannot be read (reading it crashed"),
                                   HasSubstr(strsignal(signal))));
  }
  EXPECT_EQ(refused([]() -> cli::Answer { _exit(0); }).code, 2);
  EXPECT_EQ(refused([]() -> cli::Answer { _exit(3); }).code, 2);
}

TEST(InChild, EndsWhatDoesNotEnd) {
  const Outcome sleeping = refused(
      []() -> cli::Answer {
        for (;;) std::this_thread::sleep_for(1h);
      },
      {kGenerous.memory_bytes, 60s, 1s});
  EXPECT_EQ(sleeping.code, 2);
  EXPECT_THAT(sleeping.err, HasSubstr("gave up reading after 1 s"));
  const Outcome busy = refused(
      []() -> cli::Answer {
        for (volatile unsigned spins = 0;;) spins = spins + 1;
      },
      {kGenerous.memory_bytes, 1s, 60s});
  EXPECT_EQ(busy.code, 2);
  EXPECT_THAT(busy.err, HasSubstr("1 s of processor time"));
}

TEST(InChild, FilesThatClaimAnySizeGetNoMoreThanTheMachineHas) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
  const auto machine = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  EXPECT_GE(cli::limits_for(0).memory_bytes, 2 * kGiB);
  for (const std::uint64_t claimed : {1024 * kGiB, std::uint64_t{1} << 62U})
    EXPECT_EQ(cli::limits_for(claimed).memory_bytes, std::max(2 * kGiB, machine));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they take terabytes

TEST(InChild, MemoryIsBounded) {
  const auto take_all = []() -> cli::Answer {
    std::vector<std::string> blocks;
    for (;;) blocks.emplace_back(std::size_t{1} << 24U, 'x');
  };
  const Outcome outcome = refused(take_all, {std::uint64_t{1} << 29U, 60s, 60s});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("more than the 512 MiB"), HasSubstr("LONGHAUL_READ_MEMORY")));
}

/// Columns of zeros pack well: a small file that takes a lot of memory.
TEST(InChild, TheToolRefusesFilesThatUnpackTooFar) {
  const TempDir dir;
  trace::Trace trace;
  trace.measured.rows.resize(1'500'000);
  const std::string file = dir.path("bomb.h5");
  trace::write_trace(file, trace);
  ASSERT_LT(std::filesystem::file_size(file), 2'000'000U);
  setenv("LONGHAUL_READ_MEMORY", "220MiB", 1);
  const Outcome outcome = longhaul_run({"trace", "summary", file});
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("more than the 220 MiB of memory"));
  setenv("LONGHAUL_READ_MEMORY", "much", 1);
  EXPECT_EQ(longhaul_run({"trace", "summary", file}).code, 2);
  unsetenv("LONGHAUL_READ_MEMORY");
}

#endif

}  // namespace
}  // namespace longhaul::test
