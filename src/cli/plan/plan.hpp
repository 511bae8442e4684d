#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/command/commands.hpp"
#include "planner/sites/branch_and_bound.hpp"
#include "planner/sites/break_even.hpp"

namespace longhaul::cli {

/// The options of `longhaul plan`, parsed.
struct PlanOptions {
  planner::SiteOrder order = planner::SiteOrder::availability;
  bool exact = false;  ///< --search exact
  planner::SiteObjective objective = planner::SiteObjective::throughput;
  std::optional<int> most_cells;
  std::optional<int> limit;
  std::vector<int> pipelines;  ///< values of C; empty: the scenario's
  std::vector<planner::ScheduleRequest> schedules;
  planner::CellModel model = planner::CellModel::relays;
  int threads = 0;
  std::vector<Duration> latencies;
  double tolerance = 0.001;
};

/// Throws Error that names the option whose value is wrong.
[[nodiscard]] PlanOptions plan_options_of(const PlanArguments& arguments,
                                          const std::string& schedules);

/// The datacenter of that name. Throws Error with the nearest known one.
[[nodiscard]] DatacenterId datacenter_of(const Scenario& scenario, const std::string& name,
                                         const char* option);

/// The words between commas; Error where one is empty.
[[nodiscard]] std::vector<std::string> words_of(const char* option, const std::string& list);

[[nodiscard]] planner::Algorithm1Options algorithm1_options_of(const PlanOptions& options);
[[nodiscard]] planner::SiteSearchOptions search_options_of(const PlanOptions& options);

/// The best plan by the objective, by algorithm 1 or the search. Throws Error where there is none.
[[nodiscard]] planner::SitePlan best_of(const planner::GpuInventory& inventory,
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
