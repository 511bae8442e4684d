#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/commands.hpp"
#include "cli/record.hpp"
#include "plan/plan.hpp"
#include "planner/make_schedule.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul {

/// A schedule that came with a group (`static`, `dynamic`) but is not defined on the scenario.
struct SkippedSchedule {
  std::string schedule;
  std::string reason;
};

struct ChosenSchedules {
  std::vector<ScheduleResult> schedules;  ///< valid; names are unique
  std::vector<SkippedSchedule> skipped;
};

/// The scenario of the command: its only file, with overrides.
[[nodiscard]] Scenario scenario_of(const Options& options);
/// Throws Error with the nearest known word.
[[nodiscard]] Arrangement arrangement_of(std::string_view comm);

/// --comm and the options of the planner.
[[nodiscard]] PlannerOptions planner_options_of(const Options& options);

/// Makes or reads the schedules of a comma list; all of them can run in the arrangement. Throws
/// Error on an unknown name, on a schedule that was named but is not defined on the scenario and,
/// with answer_is_no, on an invalid file. Shows on a terminal what it is looking for.
[[nodiscard]] ChosenSchedules choose_schedules(std::string_view list, const Scenario& scenario,
                                               const PlannerOptions& options = {});
/// The same where the command takes exactly one.
[[nodiscard]] ScheduleResult choose_schedule(std::string_view name, const Scenario& scenario,
                                             const PlannerOptions& options = {});
/// What only a dry run shows of a schedule without a violation: a missing link, an order of a link
/// that names what is not there or deadlocks. nullopt: it runs.
[[nodiscard]] std::optional<std::string> why_not_runnable(const Schedule& schedule,
                                                          const Scenario& scenario,
                                                          Arrangement arrangement);
/// Reads a schedule's file as it is; every replica follows rows that are given once.
[[nodiscard]] Schedule read_schedule_file(const std::filesystem::path& file);

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
