#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/make_schedule.hpp"

namespace longhaul {

/// A schedule that came with a group (`static`, `dynamic`, `shared`) but is not defined on the
/// scenario.
struct SkippedSchedule {
  std::string schedule;
  std::string reason;
};

struct ChosenSchedules {
  std::vector<MadeSchedule> schedules;  ///< valid; names are unique
  std::vector<SkippedSchedule> skipped;
};

/// Makes or reads what is asked for, so that it can run in the arrangement of the options; over the
/// budget or not where it is a file. Refused where it is not defined on the scenario and, with
/// answer_is_no, where a file is not valid there.
Result<MadeSchedule> try_choose(const ScheduleRequest& request, const Scenario& scenario,
                                const PlannerOptions& options = {});

/// All of them. Throws Error on one that was asked for by itself and is refused. Shows on a
/// terminal what it is looking for.
[[nodiscard]] ChosenSchedules choose_schedules(std::span<const ScheduleRequest> requests,
                                               const Scenario& scenario,
                                               const PlannerOptions& options = {});

/// The one that a command takes. Throws Error where it is refused.
[[nodiscard]] MadeSchedule choose_schedule(const ScheduleRequest& request, const Scenario& scenario,
                                           const PlannerOptions& options = {});

/// Reads a file's schedule for the scenario: rows that are given once are every replica's.
[[nodiscard]] Schedule read_schedule_for(const std::filesystem::path& file,
                                         const Scenario& scenario);

}  // namespace longhaul
