#pragma once

#include "base/result.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// Temporal sharing under the orders of any schedule whose replicas are equal (Atlas section 4.3
/// has it under its own order alone): in_cells(), with the turns of the rule (turn_rules.hpp) that
/// the simulator likes best. The same where there is nothing to share, but for the name. The
/// schedule must be valid. Throws Error where in_cells() refuses, or a link is missing.
[[nodiscard]] Schedule share_wan(const Schedule& schedule, const Scenario& scenario);
/// The same, where a refusal is an answer.
Result<Schedule> try_share_wan(const Schedule& schedule, const Scenario& scenario);

}  // namespace longhaul::planner
