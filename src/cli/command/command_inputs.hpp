#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/command/commands.hpp"
#include "report/evaluate.hpp"

namespace longhaul::cli {

/// The scenario of the command: its only file, with overrides. Throws Error where none is named.
[[nodiscard]] Scenario scenario_of(const Options& options);

/// --comm and the options of the planner.
[[nodiscard]] planner::PlannerOptions planner_options_of(const Options& options);

/// The first keys of the record of a command on a scenario: RecordHeader, scenario, its shape.
[[nodiscard]] nlohmann::ordered_json record_header(const Options& options,
                                                   const Scenario& scenario);

}  // namespace longhaul::cli
