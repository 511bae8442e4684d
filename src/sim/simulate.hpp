#pragma once

#include "plan/plan.hpp"
#include "trace/timeline.hpp"

namespace longhaul {

/// Runs a plan in virtual time, exact to the nanosecond. Throws Error (run_failed) that names the
/// cycle of waiting ops if the plan deadlocks.
[[nodiscard]] OpTimes simulate(const Plan& plan);

}  // namespace longhaul
