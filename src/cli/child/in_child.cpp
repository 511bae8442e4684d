#include "cli/child/in_child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "base/index.hpp"
#include "base/unit_text.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LONGHAUL_SHADOW_MEMORY  // sanitizers reserve terabytes of addresses
#endif

namespace longhaul::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// First byte of what the child says; the text follows. No byte at all: it came to grief.
enum class Said : char { answer = 'a', error = 'e', out_of_memory = 'm' };

void limit(int resource, std::uint64_t most) {
  rlimit now{};
  if (getrlimit(resource, &now) != 0) return;
  now.rlim_cur = std::min<rlim_t>(now.rlim_max, most);
  setrlimit(resource, &now);
}

void apply([[maybe_unused]] const ChildLimits& limits) {
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no one waits for it any more
#endif
#if !defined(LONGHAUL_SHADOW_MEMORY)
  limit(RLIMIT_AS, limits.memory_bytes);
#endif
  limit(RLIMIT_CPU, static_cast<std::uint64_t>(limits.processor.count()));
}

bool write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(to, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(to_size(written));
  }
  return true;
}

void say(int to, Said said, ExitCode code, std::string_view text) {
  const std::array<char, 2> head{static_cast<char>(said), static_cast<char>(code)};
  if (write_all(to, {head.data(), head.size()})) write_all(to, text);
}

[[noreturn]] void be_child(int to, const ChildLimits& limits,
                           const std::function<Answer()>& command) {
  apply(limits);
  int status = EXIT_FAILURE;
  try {
    const Answer answer = command();
    say(to, Said::answer, answer.code, answer.text);
    status = EXIT_SUCCESS;
  } catch (const Error& error) {
    say(to, Said::error, error.code(), error.what());
    status = EXIT_SUCCESS;
  } catch (const std::bad_alloc&) {
    say(to, Said::out_of_memory, ExitCode::bad_input, {});
    status = EXIT_SUCCESS;
  } catch (const std::exception& error) {
    say(to, Said::error, ExitCode::run_failed, error.what());
    status = EXIT_SUCCESS;
  }
  _exit(status);  // whatever the parent had not flushed yet is the parent's
}

/// Reads to the end of the pipe, or to the deadline.
bool read_all(int from, std::chrono::seconds wall, std::string& text) {
  const Clock::time_point deadline = Clock::now() + wall;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd ready{from, POLLIN, 0};
    const int count =
        poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    if (count <= 0) continue;
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got == 0) return true;
    if (got > 0) text.append(buffer.data(), to_size(got));
  }
}

/// The reader's end of a child that is waited for, whatever happens.
class Child {
public:
  Child(pid_t pid, int from) : pid_{pid}, from_{from} {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    close(from_);
    if (!waited_) kill(pid_, SIGKILL);
    static_cast<void>(wait());
  }
  [[nodiscard]] int from() const { return from_; }
  void end() const { kill(pid_, SIGKILL); }
  int wait() {
    while (!waited_ && waitpid(pid_, &status_, 0) < 0 && errno == EINTR) continue;
    waited_ = true;
    return status_;
  }

private:
  pid_t pid_;
  int from_;
  int status_ = 0;
  bool waited_ = false;
};

[[noreturn]] void fail_spawning(const std::string& files) {
  throw Error{fmt::format("{}: cannot be read in a process of its own ({}). Try again later.",
                          files, std::strerror(errno)),
              ExitCode::run_failed};
}

[[noreturn]] void fail_crashed(const std::string& files, const ChildLimits& limits, int status) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGXCPU)
    fail(
        "{}: gave up reading (more than {} s of processor time; a recorded trace takes less). "
        "Make sure that the file is what it says.",
        files, limits.processor.count());
  fail(
      "{}: cannot be read (reading it crashed: {}; the file is damaged, or made to do that). Copy "
      "it again, or record it again.",
      files, signal == 0 ? "it ended early" : strsignal(signal));
}

}  // namespace

ChildLimits limits_for(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
  constexpr std::uint64_t kLeast = 2048 * kMiB;
  // A file with holes may claim any size: what the machine has is a bound for it, too.
  const auto machine = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  // Rows in memory take up to some 40 times the compressed columns.
  const std::uint64_t wanted = bytes < machine / 64 ? kLeast + 64 * bytes : machine;
  ChildLimits limits{std::max(kLeast, std::min(wanted, machine)),
                     std::chrono::seconds{120 + bytes / kMiB},
                     std::chrono::seconds{1200 + 10 * (bytes / kMiB)}};
  if (const char* memory = std::getenv("LONGHAUL_READ_MEMORY"); memory != nullptr)
    limits.memory_bytes = static_cast<std::uint64_t>(parse_bytes(memory).count());
  return limits;
}

Answer in_child(const std::string& files, const ChildLimits& limits,
                const std::function<Answer()>& command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail_spawning(files);
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    fail_spawning(files);
  }
  if (pid == 0) {
    close(ends[0]);
    be_child(ends[1], limits, command);
  }
  close(ends[1]);
  Child child{pid, ends[0]};
  std::string said;
  if (!read_all(child.from(), limits.wall, said)) {
    child.end();
    fail(
        "{}: gave up reading after {} s. Make sure that the file is what it says, and its disk "
        "well.",
        files, limits.wall.count());
  }
  const int status = child.wait();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS || said.size() < 2)
    fail_crashed(files, limits, status);
  const auto code = static_cast<ExitCode>(said[1]);
  if (said.front() == static_cast<char>(Said::answer)) return {said.substr(2), code};
  if (said.front() == static_cast<char>(Said::out_of_memory))
    fail(
        "{}: takes more than the {} of memory that a file of its size may. If you trust it, set "
        "LONGHAUL_READ_MEMORY to more.",
        files, to_text(Bytes{static_cast<std::int64_t>(limits.memory_bytes)}));
  throw Error{said.substr(2), code};
}

}  // namespace longhaul::cli
