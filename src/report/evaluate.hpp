#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.hpp"
#include "planner/choose_schedules.hpp"
#include "report/record.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::report {

/// Throws Error with the nearest known word.
[[nodiscard]] Arrangement arrangement_of(std::string_view comm);

/// Lowers and simulates; its rows go to the end of `timeline` as iteration 0.
[[nodiscard]] ScheduleRecord evaluate(const planner::ScheduleResult& made, const Scenario& scenario,
                                      Arrangement arrangement, Timeline& timeline);

/// "4 stages, 1 replica, 8 microbatches".
[[nodiscard]] std::string size_text(const Scenario& scenario);
/// Settings of the scenario that predictions leave out: "run.noise", "run.stragglers".
[[nodiscard]] std::vector<std::string> ignored_settings(const Scenario& scenario);
/// A line for people that names them, after an empty line; nothing where none is set. `but`
/// follows their purpose: "; weather counts in its own table".
[[nodiscard]] std::string ignored_text(const Scenario& scenario, std::string_view but = "");

/// Pretty-printed, with a line end.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& json);

}  // namespace longhaul::report
