#include "runtime/clock.hpp"

#include <ctime>

#include <sys/prctl.h>

namespace longhaul {

TimePoint now() {
  timespec stamp{};
  clock_gettime(CLOCK_MONOTONIC, &stamp);
  return std::chrono::seconds{stamp.tv_sec} + Duration{stamp.tv_nsec};
}

void make_timers_precise() { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

}  // namespace longhaul
