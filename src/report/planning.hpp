#pragma once

#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "planner/make_schedule.hpp"

namespace longhaul {
class Arguments;
}

namespace longhaul::report {

/// Options of schedules that are found by search, as typed; empty: the default.
struct PlannerArguments {
  std::string search_time;
  std::string search_moves;
  std::string search_threads;
  std::string search_seed;
  std::string placement;
  bool robust = false;
  std::string time_limit;
  std::string overlap_search;
  bool any_microbatch_order = false;
  bool solver_without_dp = false;
  bool solver_without_fusion = false;
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_planner_options(Arguments& command, PlannerArguments& arguments);

/// Of --comm. Throws Error with the nearest known word.
[[nodiscard]] Arrangement arrangement_of(std::string_view comm);
/// Throws Error that names the option whose value is wrong.
[[nodiscard]] planner::PlannerOptions planner_options_of(const PlannerArguments& arguments,
                                                         Arrangement arrangement);

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
