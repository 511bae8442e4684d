#pragma once

#include "plan/plan.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// The treatment of the turns of DP-cells (turns_name()).
enum class Turns : std::uint8_t {
  ordered,  ///< each is a resource of the plan, as any other
  taken,    ///< the order of the plan's lanes says it already
};

/// States the orders that a schedule gives for shared links and interfaces in the plan's resources.
/// They name whole messages: one that travels in pieces takes its place with all of those that hold
/// the resource, one after the other. Throws Error where one names an unknown resource or message,
/// or leaves out a user.
void apply_link_orders(Plan& plan, const Schedule& schedule, Turns turns);

}  // namespace longhaul
