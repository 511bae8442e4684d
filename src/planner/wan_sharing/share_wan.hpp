#pragma once

#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// Temporal sharing under the orders of any schedule whose replicas are alike (Atlas section 4.3
/// has it under its own order alone): in_cells(), with the turns of the rule (turn_rules.hpp) that
/// the simulator likes best. The same where there is nothing to share, but for the name. The
/// schedule must be valid. Throws Error as in_cells() and lower() do.
[[nodiscard]] Schedule share_wan(const Schedule& schedule, const Scenario& scenario);

}  // namespace longhaul
