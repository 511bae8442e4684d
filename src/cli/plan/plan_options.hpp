#pragma once

#include <optional>
#include <string>
#include <vector>

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

}  // namespace longhaul::cli
