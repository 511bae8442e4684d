#pragma once

#include <map>
#include <set>
#include <string>

#include "planner/bounds/relaxation.hpp"
#include "schedule/placement.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// Which schedules a bound holds for, in words: "ud placement, whole blocks or parts, budget 1, not
/// recomputed".
class ClassOfBound {
public:
  void add(const Schedule& layout, const Relaxation& relaxed);
  [[nodiscard]] std::string text(double budget) const;

private:
  std::map<std::string, std::set<Placement>> placements_;  ///< by what else the class says
};

}  // namespace longhaul
