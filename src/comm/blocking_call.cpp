#include "comm/blocking_call.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/unit_text.hpp"

namespace longhaul::comm {
namespace {

/// Calls of this thread, one within the other.
thread_local int depth = 0;

/// The alarm's message: made beforehand, for the handler may do no more than write it.
std::atomic<const char*> awaited = nullptr;

void on_alarm(int /*signal*/) {
  constexpr int kFailed = 3;
  if (const char* const text = awaited.load()) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
  }
  _exit(kFailed);
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
}

/// The process has one alarm, and threads that are ranks wait side by side: it stands for the call
/// whose limit comes first.
class Calls {
public:
  void add(const BlockingCall& call) {
    const std::scoped_lock lock{mutex_};
    open_.push_back(&call);
    set();
  }
  void remove(const BlockingCall& call) {
    const std::scoped_lock lock{mutex_};
    std::erase(open_, &call);
    set();
  }

private:
  void set() {
    if (open_.empty()) {
      alarm(0);
      awaited = nullptr;
      set_handler(SIG_DFL);
      return;
    }
    const BlockingCall& first = **std::ranges::min_element(
        open_, {}, [](const BlockingCall* call) { return call->until(); });
    awaited = first.words();
    set_handler(on_alarm);
    const auto left = std::chrono::ceil<std::chrono::seconds>(first.until() - now()).count();
    alarm(static_cast<unsigned>(std::max<std::int64_t>(1, left)));
  }

  std::mutex mutex_;
  std::vector<const BlockingCall*> open_;
} calls;

}  // namespace

BlockingCall::BlockingCall(const char* what, Duration limit) : until_{now() + limit} {
  if (depth++ > 0) return;
  const auto end = fmt::format_to_n(
      words_.data(), words_.size() - 1,
      "longhaul: the run ends: process {} has waited {} for {} (a rank is dead or stopped).\n",
      getpid(), to_text(limit), what);
  *end.out = '\0';
  calls.add(*this);
}

BlockingCall::~BlockingCall() {
  if (--depth > 0) return;
  calls.remove(*this);
}

}  // namespace longhaul::comm
