#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/command/commands.hpp"
#include "cli/plan/plan_options.hpp"

namespace longhaul {

[[nodiscard]] Algorithm1Options algorithm1_options_of(const PlanOptions& options);
[[nodiscard]] SiteSearchOptions search_options_of(const PlanOptions& options);

/// The best plan by the objective, by algorithm 1 or the search. Throws Error where there is none.
[[nodiscard]] SitePlan best_of(const GpuInventory& supply, const PlanOptions& options,
                               CellTimes& cells);

/// The first keys of every record of `longhaul plan`.
[[nodiscard]] nlohmann::ordered_json plan_header(const Options& options, const PlanOptions& plan,
                                                 const Scenario& scenario);

}  // namespace longhaul
