#include "base/program/child_process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"

extern char** environ;  // NOLINT: POSIX has it so

namespace longhaul {
namespace {

using Clock = std::chrono::steady_clock;

/// What a child writes; a nameless file, so that it can never block.
class WrittenText {
public:
  WrittenText() : file_{std::tmpfile()} {
    if (file_ == nullptr)
      fail("cannot make a temporary file ({}). Free some disk space, or set TMPDIR.",
           std::strerror(errno));
  }
  WrittenText(const WrittenText&) = delete;
  WrittenText& operator=(const WrittenText&) = delete;
  ~WrittenText() { std::fclose(file_); }

  [[nodiscard]] int descriptor() const { return fileno(file_); }
  /// Its last `most` bytes.
  [[nodiscard]] std::string last(long most) const {
    std::fseek(file_, 0, SEEK_END);
    const long size = std::ftell(file_);
    std::fseek(file_, std::max(size - most, 0L), SEEK_SET);
    std::string text(static_cast<std::size_t>(std::clamp(size, 0L, most)), '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_));
    return text;
  }

private:
  std::FILE* file_;
};

/// Without the line ends that it ends with.
std::string without_end(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// The strings as C wants them; valid while they live.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text{*entry};
    bool replaced = false;
    for (const auto& [name, value] : added) replaced |= text.rfind(name + "=", 0) == 0;
    if (!replaced) all.push_back(text);
  }
  return all;
}

/// A nullptr for `output` drops it.
pid_t spawn(std::vector<std::string> command, std::vector<std::string> environment,
            const WrittenText* output, const WrittenText& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output == nullptr)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  else
    posix_spawn_file_actions_adddup2(&actions, output->descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, command.front().c_str(), &actions, nullptr,
                                  pointers(command).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    fail("cannot start {} ({}). Run scripts/setup, or set LONGHAUL_PYTHON.", command.front(),
         std::strerror(failed));
  return child;
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& environment,
                   Duration limit, ChildOutput output) {
  constexpr long kMostSaid = 2000;
  const WrittenText errors;
  std::optional<WrittenText> written;
  if (output == ChildOutput::keep) written.emplace();
  const Clock::time_point begin = Clock::now();
  const pid_t child =
      spawn(command, environment_with(environment), written ? &*written : nullptr, errors);
  ChildEnd end;
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(child, &status, end.timed_out ? 0 : WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR)
      throw Error{fmt::format("lost the child process {} ({}). Run it again.", command.front(),
                              std::strerror(errno)),
                  ExitCode::run_failed};
    if (!end.timed_out && Clock::now() - begin > limit) {
      kill(child, SIGKILL);
      end.timed_out = true;
      continue;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  end.said = without_end(errors.last(kMostSaid));
  if (written) end.output = written->last(std::numeric_limits<long>::max());
  end.took = std::chrono::duration_cast<Duration>(Clock::now() - begin);
  return end;
}

}  // namespace longhaul
