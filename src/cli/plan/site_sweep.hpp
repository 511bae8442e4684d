#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/command/commands.hpp"
#include "cli/plan/plan_options.hpp"

namespace longhaul::cli {

[[nodiscard]] planner::Algorithm1Options algorithm1_options_of(const PlanOptions& options);
[[nodiscard]] planner::SiteSearchOptions search_options_of(const PlanOptions& options);

/// The best plan by the objective, by algorithm 1 or the search. Throws Error where there is none.
[[nodiscard]] planner::SitePlan best_of(const planner::GpuInventory& supply,
                                        const PlanOptions& options, planner::CellTimes& cells);

/// The first keys of every record of `longhaul plan`.
[[nodiscard]] nlohmann::ordered_json plan_header(const Options& options, const PlanOptions& plan,
                                                 const Scenario& scenario);

/// --sweep PATH=FROM:TO:STEP: a value of the scenario and what it is to be in turn.
struct ParameterSweep {
  std::string path;
  std::vector<std::string> values;
};
/// Throws Error for a range that is empty, backwards, without end or above 1,000 values.
[[nodiscard]] ParameterSweep parse_sweep(const std::string& text);

/// The best plan (by the objective) at every point of the grid of all --sweep, the last running
/// fastest; up to 10,000 points. Throws Error for a path that the scenario does not know; a point
/// without a plan says why.
[[nodiscard]] Answer sweep_answer(const Options& options, const PlanOptions& plan);

}  // namespace longhaul::cli
