#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/record.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "trace/timeline.hpp"

namespace longhaul {

/// A schedule that was asked for by `static` but is not defined on the scenario.
struct SkippedSchedule {
  std::string schedule;
  std::string reason;
};

struct ChosenSchedules {
  std::vector<Schedule> schedules;  ///< valid; names are unique
  std::vector<SkippedSchedule> skipped;
};

/// The scenario of the command: its only file, with overrides.
[[nodiscard]] Scenario scenario_of(const Options& options);
/// Throws Error with the nearest known word.
[[nodiscard]] Arrangement arrangement_of(std::string_view comm);
[[nodiscard]] const char* name_of(Arrangement arrangement);

/// Makes or reads the schedules of a comma list. Throws Error on an unknown name, on a schedule
/// that was named but is not defined on the scenario and, with answer_is_no, on an invalid file.
[[nodiscard]] ChosenSchedules choose_schedules(std::string_view list, const Scenario& scenario);
/// The same where the command takes exactly one.
[[nodiscard]] Schedule choose_schedule(std::string_view name, const Scenario& scenario);
/// Reads a schedule's file as it is; every replica follows rows that are given once.
[[nodiscard]] Schedule read_schedule_file(const std::filesystem::path& file);

/// Lowers and simulates; its rows go to the end of `timeline` as iteration 0.
[[nodiscard]] ScheduleRecord evaluate(const Schedule& schedule, const Scenario& scenario,
                                      Arrangement arrangement, Timeline& timeline);

/// What every record says first: schema version, creator, command line, scenario.
[[nodiscard]] nlohmann::ordered_json record_header(const Options& options,
                                                   const Scenario& scenario);

/// Pretty-printed, with a line end.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& json);

inline constexpr int kRecordSchemaVersion = 1;

}  // namespace longhaul
