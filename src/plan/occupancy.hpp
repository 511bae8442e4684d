#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::plan {

/// How much one resource was used in an iteration.
struct ResourceUse {
  std::string name;
  ResourceKind kind = ResourceKind::device;
  Duration busy{};        ///< sum of all holds; over capacity * makespan it is the occupancy
  std::size_t holds = 0;  ///< ops that held it, those that took no time included
};

/// The occupancy of every resource of the plan, in the plan's order.
[[nodiscard]] std::vector<ResourceUse> occupancy(const Plan& plan, const OpTimes& times);

}  // namespace longhaul::plan
