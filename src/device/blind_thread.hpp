#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace longhaul::device {

/// A thread that signals do not reach: they are for the rank's own one, its watchdog's. `work`
/// takes a std::stop_token.
template <typename Work>
std::jthread start_blind_to_signals(Work&& work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::jthread thread{std::forward<Work>(work)};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace longhaul::device
