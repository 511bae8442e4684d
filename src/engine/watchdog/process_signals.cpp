#include "engine/watchdog/process_signals.hpp"

#include <array>
#include <csignal>
#include <mutex>

#include "comm/group/session.hpp"

namespace longhaul::engine {
namespace {

std::atomic<int> end_signal = 0;
std::atomic<bool> takes_drains = false, is_told_to_drain = false;
/// The thread of one of its ranks, where they are threads: that one tells of the signal.
std::atomic<std::atomic<std::uint32_t>*> doorbell_of_this_process = nullptr;
static_assert(decltype(doorbell_of_this_process)::is_always_lock_free);
static_assert(decltype(end_signal)::is_always_lock_free);

/// A sleeper that has not gone to sleep yet sees the doorbell; one that has is woken by the signal,
/// or, where another thread has got it, looks around soon all the same.
void on_signal(int signal) {
  const bool may_drain = signal == SIGUSR1 || (signal == SIGTERM && !comm::was_launched());
  if (!may_drain || !takes_drains || is_told_to_drain.exchange(true))
    end_signal = signal == SIGUSR1 ? SIGTERM : signal;
  if (auto* const doorbell = doorbell_of_this_process.load()) doorbell->fetch_add(1);
}

constexpr std::array kSignals{SIGTERM, SIGINT, SIGHUP};

/// nohup has it ignored, and so it stays.
bool is_ignored(int signal) {
  struct sigaction set {};
  sigaction(signal, nullptr, &set);
  return set.sa_handler == SIG_IGN;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // a process that drains goes on to write
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

/// Signals are the process's: taken over by the first rank in it, given back by the last.
class Users {
public:
  void come(bool drains) {
    const std::scoped_lock lock{mutex_};
    if (drains) handle(SIGUSR1, on_signal);
    drains_ = drains_ || drains;
    if (count_++ > 0) return;
    for (const int signal : kSignals)
      if (signal != SIGHUP || !is_ignored(signal)) handle(signal, on_signal);
  }
  void go() {
    const std::scoped_lock lock{mutex_};
    if (--count_ > 0) return;
    for (const int signal : kSignals)
      if (!is_ignored(signal)) handle(signal, SIG_DFL);
    // One that comes now stands for an order to a run that is over.
    if (drains_) handle(SIGUSR1, SIG_IGN);
    drains_ = takes_drains = is_told_to_drain = false;
  }

private:
  std::mutex mutex_;
  int count_ = 0;
  bool drains_ = false;
} users;

}  // namespace

ProcessSignals::ProcessSignals(std::atomic<std::uint32_t>& doorbell, bool drains)
    : doorbell_{doorbell} {
  doorbell_of_this_process = &doorbell;
  users.come(drains);
}

ProcessSignals::~ProcessSignals() {
  users.go();
  auto* mine = &doorbell_;
  doorbell_of_this_process.compare_exchange_strong(mine, nullptr);
}

int ProcessSignals::told_to_end() const { return end_signal; }
void ProcessSignals::take_first_as_drain() const { takes_drains = true; }
bool ProcessSignals::told_to_drain() const { return is_told_to_drain; }

const char* name_of_signal(int signal) {
  return signal == SIGTERM ? "SIGTERM" : signal == SIGINT ? "SIGINT" : "SIGHUP";
}

}  // namespace longhaul::engine
