#pragma once

#include "base/units.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::planner {

/// The least memory of the blocks, messages, times and rows of one schedule, with one chunk a
/// device: as long as they are simulated, all of them are there.
[[nodiscard]] Bytes least_plan_memory(const Scenario& scenario);

/// Memory that this process may still take: the machine's, or its control group's or its own limit
/// where that is less.
[[nodiscard]] Bytes free_memory();

/// Throws Error where a plan needs more than that. Refused here and not when it has run out: a
/// kernel may end the process before it can say why.
void require_plan_memory(const Scenario& scenario, Bytes available);

}  // namespace longhaul::planner
