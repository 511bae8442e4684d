#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "harness/trace_cost/phases.hpp"

namespace longhaul::harness {
namespace {

/// The child's report: a digit for its exit code, then the rows, or the reason of its failure.
std::string outcome_of(const std::function<std::int64_t()>& work) {
  const auto failed = [](ExitCode code, const char* why) {
    return fmt::format("{}{}", static_cast<int>(code), why);
  };
  try {
    return fmt::format("{}{}", static_cast<int>(ExitCode::fine), work());
  } catch (const std::bad_alloc&) {
    return failed(ExitCode::run_failed, "it ran out of memory");
  } catch (const Error& error) {
    return failed(error.code(), error.what());
  }
}

void limit_memory(Bytes limit) {
  const rlimit most{static_cast<rlim_t>(limit.count()), static_cast<rlim_t>(limit.count())};
  if (setrlimit(RLIMIT_AS, &most) != 0) fail("no limit of memory can be set");
}

[[noreturn]] void be_child(int out, std::optional<Bytes> memory_limit,
                           const std::function<std::int64_t()>& work) {
  const std::string text = outcome_of([&] {
    if (memory_limit) limit_memory(*memory_limit);
    return work();
  });
  const bool told = write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  _exit(told ? 0 : 1);
}

std::string read_all(int in) {
  std::string text;
  char some[256];
  for (ssize_t got = 0; (got = read(in, some, sizeof some)) > 0;)
    text.append(some, static_cast<std::size_t>(got));
  return text;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

PhaseCost run_phase(const std::string& name, std::optional<Bytes> memory_limit,
                    const std::function<std::int64_t()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  int ends[2];
  if (pipe(ends) != 0) fail("no pipe can be made ({}).", std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) fail("no process can be made ({}).", std::strerror(errno));
  if (child == 0) {
    close(ends[0]);
    be_child(ends[1], memory_limit, work);
  }
  close(ends[1]);
  const std::string text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  if (text.empty()) throw Error{name + ": its process was killed.", ExitCode::run_failed};
  const auto code = static_cast<ExitCode>(text.front() - '0');
  if (code != ExitCode::fine) throw Error{fmt::format("{}: {}.", name, text.substr(1)), code};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return {name, std::stoll(text.substr(1)), took.count(),
          seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), Bytes{usage.ru_maxrss * 1024}};
}

}  // namespace longhaul::harness
