#pragma once

#include "plan/plan.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// States the orders that a schedule gives for shared links and interfaces in the plan's resources.
/// Throws Error where one names an unknown resource or message, or leaves out a user.
void apply_link_orders(Plan& plan, const Schedule& schedule);

}  // namespace longhaul
