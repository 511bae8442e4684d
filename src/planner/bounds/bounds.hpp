#pragma once

#include <span>
#include <string>

#include "base/units.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// A time below which no schedule of a class can end, data-parallel communication included.
struct Bound {
  Duration lower_bound{};
  std::string holds_for;  ///< "ud placement, whole blocks or parts, budget 1, not recomputed"
  std::string reason;     ///< "work of device 3 between head and tail", "memory of device 0: ..."
};

/// Holds for every schedule of the scenario (decoupled communication, within the budget) with the
/// chunks of `like` on the same devices and the same chunks recomputed, in any order, whether it
/// splits B into D and W or not, and blocks into parts or not. Only the layout of `like` counts,
/// not its rows, but for which chunks have an R in them; where it has no blocks, the scenario says
/// what is recomputed. Where it has cells that share the WAN (Schedule::cell), it holds for cells
/// of that size, with any turns.
[[nodiscard]] Bound lower_bound(const Schedule& like, const Scenario& scenario);

/// Holds for every schedule with one of the layouts: the smallest of their bounds. Of no layout: 0.
[[nodiscard]] Bound lower_bound_of_any(std::span<const Schedule> layouts, const Scenario& scenario);

/// makespan / lower_bound - 1; 0 where the bound is 0.
[[nodiscard]] double gap(Duration makespan, const Bound& bound);

}  // namespace longhaul::planner
