#include "host/background.hpp"

#include <csignal>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace longhaul::host {
namespace {

/// Each step is a courtesy to the ranks: where the system refuses one, the work goes on as it can.
void step_back() {
  // On Linux a priority is a thread's own, and a thread inherits the cores of who started it.
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19));
  sched_param none{};
  static_cast<void>(sched_setscheduler(0, SCHED_BATCH, &none));
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(static_cast<unsigned>(core), &cores);
  static_cast<void>(sched_setaffinity(0, sizeof cores, &cores));
}

}  // namespace

std::jthread run_in_background(std::function<void()> work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::jthread thread{[work = std::move(work)] {
    step_back();
    work();
  }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace longhaul::host
