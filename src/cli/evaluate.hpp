#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/commands.hpp"
#include "cli/record.hpp"
#include "plan/plan.hpp"
#include "planner/choose_schedules.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul {

/// The scenario of the command: its only file, with overrides.
[[nodiscard]] Scenario scenario_of(const Options& options);
/// Throws Error with the nearest known word.
[[nodiscard]] Arrangement arrangement_of(std::string_view comm);

/// --comm and the options of the planner.
[[nodiscard]] PlannerOptions planner_options_of(const Options& options);

/// Lowers and simulates; its rows go to the end of `timeline` as iteration 0.
[[nodiscard]] ScheduleRecord evaluate(const ScheduleResult& made, const Scenario& scenario,
                                      Arrangement arrangement, Timeline& timeline);

/// "4 stages, 1 replica, 8 microbatches".
[[nodiscard]] std::string size_text(const Scenario& scenario);
/// Settings of the scenario that predictions leave out: "run.noise", "run.stragglers".
[[nodiscard]] std::vector<std::string> ignored_settings(const Scenario& scenario);
/// A line for people that names them, with an empty one in front; nothing where none is set. `but`
/// follows what they are for: "; weather counts in its own table".
[[nodiscard]] std::string ignored_text(const Scenario& scenario, std::string_view but = "");

/// What every record says first: schema version, creator, command line, scenario.
[[nodiscard]] nlohmann::ordered_json record_header(const Options& options,
                                                   const Scenario& scenario);

/// Pretty-printed, with a line end.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& json);

inline constexpr int kRecordSchemaVersion = 1;

}  // namespace longhaul
