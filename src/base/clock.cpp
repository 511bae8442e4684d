#include "base/clock.hpp"

#include <ctime>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace longhaul {
namespace {

constinit thread_local VirtualClock* clock_of_thread = nullptr;

}  // namespace

VirtualClock* virtual_clock() { return clock_of_thread; }
void set_virtual_clock(VirtualClock* clock) { clock_of_thread = clock; }

TimePoint now() {
  if (clock_of_thread != nullptr) [[unlikely]]
    return clock_of_thread->now();
  timespec stamp{};
  clock_gettime(CLOCK_MONOTONIC, &stamp);
  return std::chrono::seconds{stamp.tv_sec} + Duration{stamp.tv_nsec};
}

namespace {

/// The kernel's struct sched_attr, first version: the C library has none.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;  // SCHED_OTHER
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // of SCHED_OTHER: the slice, in ns
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

void make_timers_precise() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  if (sched_getscheduler(0) != SCHED_OTHER) return;  // the user chose another (chrt): it stays
  SchedulingAttributes attributes;
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  attributes.runtime = 100'000;
  syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

}  // namespace longhaul
