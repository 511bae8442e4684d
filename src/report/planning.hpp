#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planner/make_schedule.hpp"

namespace longhaul::report {

/// How a schedule was found, for people: the candidates of `best`, those rejected with reasons.
/// Empty for schedules that are not found by search.
[[nodiscard]] std::string planning_text(const planner::ScheduleResult& made);
/// The same in a line: "best: from zb-h1, 12000 moves tried". Empty likewise.
[[nodiscard]] std::string planning_note(const planner::ScheduleResult& made);
/// The same for programs; null likewise. Times are those of the scenario that it was made for.
[[nodiscard]] nlohmann::ordered_json planning_json(const planner::ScheduleResult& made);

/// Times under jitter, a line for each schedule.
[[nodiscard]] std::string under_jitter_text(std::span<const planner::RobustCandidate> candidates);
/// The same for programs.
[[nodiscard]] nlohmann::ordered_json under_jitter_json(
    std::span<const planner::RobustCandidate> candidates);

}  // namespace longhaul::report
