#pragma once

#include "base/units.hpp"

namespace longhaul {

/// A stamp of this host's CLOCK_MONOTONIC, in nanoseconds since its epoch.
using TimePoint = Duration;

inline constexpr TimePoint kNever = TimePoint::max();

[[nodiscard]] TimePoint now();

/// Timers of this thread fire as precisely as the kernel can (the default slack is 50 us), and it
/// asks for short slices of the processor, so that where the kernel knows of them (Linux 6.12) it
/// gets its turn soon after it wakes. Needs no privilege.
void make_timers_precise();

}  // namespace longhaul
