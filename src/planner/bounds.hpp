#pragma once

#include <string>

#include "base/units.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// A time below which no schedule of a class can end, data-parallel communication included.
struct Bound {
  Duration lower_bound{};
  std::string holds_for;  ///< "wave placement, whole blocks, budget 1.0"
  std::string reason;     ///< "work of device 3 plus head and tail", "link 3>4", "memory: ..."
};

/// Are blocks of the class whole, or may they be left between parts?
enum class Granularity { whole, parts };

/// Holds for every schedule of the scenario (decoupled communication, within the budget) with the
/// chunks of `like` on the same devices, in any order, whether it splits B into D and W or not.
/// Only the layout of `like` counts, not its rows.
[[nodiscard]] Bound lower_bound(const Schedule& like, const Scenario& scenario,
                                Granularity granularity = Granularity::parts);

/// makespan / lower_bound - 1; 0 where the bound is 0.
[[nodiscard]] double gap(Duration makespan, const Bound& bound);

}  // namespace longhaul
