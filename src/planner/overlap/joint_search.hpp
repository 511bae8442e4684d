#pragma once

#include <vector>

#include "base/result.hpp"
#include "planner/overlap/overlap_search.hpp"

namespace longhaul::planner {

/// Order of blocks and overlap in one search, for what the pipeline's messages and collectives
/// share: best_overlap() of each of `orders` as far as the budget allows, the first one first; then
/// neighbouring blocks of a device change places under the overlap that was found, as long as that
/// gains; the overlap is searched again for what comes of it. Never slower than what
/// best_overlap() finds for the orders that it came to. Refused as it is for the first order.
[[nodiscard]] Result<FoundOverlap> joint_overlap(const std::vector<Schedule>& orders,
                                                 const Scenario& scenario, Arrangement arrangement,
                                                 const OverlapBudget& budget = {});

/// The orders that `--schedule best --overlap best` starts from: `schedule`, then the static and
/// dynamic ones that fit the scenario, by their makespans without overlap.
[[nodiscard]] std::vector<Schedule> orders_beside(const Schedule& schedule,
                                                  const Scenario& scenario,
                                                  Arrangement arrangement);

}  // namespace longhaul::planner
