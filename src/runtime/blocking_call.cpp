#include "runtime/blocking_call.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "base/unit_text.hpp"

namespace longhaul {
namespace {

int depth = 0;
/// Made beforehand: the handler may do no more than write it.
std::array<char, 256> words{};

void on_alarm(int /*signal*/) {
  constexpr int kFailed = 3;
  [[maybe_unused]] const auto written =
      write(STDERR_FILENO, words.data(), std::strlen(words.data()));
  _exit(kFailed);
}

}  // namespace

BlockingCall::BlockingCall(const char* what, Duration limit) {
  if (depth++ > 0) return;
  const auto end = fmt::format_to_n(
      words.data(), words.size() - 1,
      "longhaul: the run ends: process {} has waited {} for {} (a rank is dead or stopped).\n",
      getpid(), to_text(limit), what);
  *end.out = '\0';
  struct sigaction action {};
  action.sa_handler = on_alarm;
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(limit).count();
  alarm(static_cast<unsigned>(std::max<std::int64_t>(1, seconds)));
}

BlockingCall::~BlockingCall() {
  if (--depth > 0) return;
  alarm(0);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
}

}  // namespace longhaul
