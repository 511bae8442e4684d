#pragma once

#include "base/units.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// What the simulator says of a schedule: from the start of the iteration to the last end on any
/// rank, data-parallel communication included. Throws Error where the schedule cannot run (a
/// missing link, an order of a link that deadlocks). The schedule must be valid.
[[nodiscard]] Duration makespan_of(const Schedule& schedule, const Scenario& scenario,
                                   Arrangement arrangement = Arrangement::decoupled);

}  // namespace longhaul
