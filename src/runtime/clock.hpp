#pragma once

#include "base/units.hpp"

namespace longhaul {

/// A stamp of this host's CLOCK_MONOTONIC, in nanoseconds since its epoch.
using TimePoint = Duration;

inline constexpr TimePoint kNever = TimePoint::max();

[[nodiscard]] TimePoint now();

/// Timers of this thread fire as precisely as the kernel can (the default slack is 50 us).
void make_timers_precise();

}  // namespace longhaul
