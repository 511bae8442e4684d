#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/make_schedule.hpp"

namespace longhaul::planner {

/// A schedule that came with a group (`static`, `dynamic`, `shared`) but is not defined on the
/// scenario.
struct SkippedSchedule {
  std::string schedule;
  std::string reason;
};

struct ChosenSchedules {
  std::vector<ScheduleResult> schedules;  ///< valid; names are unique
  std::vector<SkippedSchedule> skipped;
};

/// Which schedules were asked for, and do they run? The one place that decides it.
///
///   const ScheduleChooser chooser{parse_schedules("static,mine.csv"), scenario, options};
///   for (const ScheduleResult& made : chooser.choose().schedules) ...
class ScheduleChooser {
public:
  /// `scenario` must live as long.
  ScheduleChooser(std::vector<ScheduleRequest> requests, const Scenario& scenario,
                  PlannerOptions options = {})
      : requests_{std::move(requests)}, scenario_{scenario}, options_{std::move(options)} {}

  /// All of them. Throws Error on one that was asked for by itself and is refused. Shows on a
  /// terminal what it is looking for.
  [[nodiscard]] ChosenSchedules choose() const;
  /// Makes or reads one, so that it can run in the arrangement of the options; over the budget or
  /// not where it is a file. Refused where it is not defined on the scenario and, with
  /// answer_is_no, where a file is not valid there.
  Result<ScheduleResult> try_choose(const ScheduleRequest& request) const;

  [[nodiscard]] const std::vector<ScheduleRequest>& requests() const { return requests_; }

private:
  struct Attempt {
    std::optional<Result<ScheduleResult>> result;
    std::exception_ptr failure;
  };

  [[nodiscard]] std::vector<Attempt> make_plain() const;
  Result<ScheduleResult> read_runnable(const ScheduleRequest& request) const;
  Result<ScheduleResult> make_runnable(const ScheduleRequest& request) const;

  std::vector<ScheduleRequest> requests_;
  const Scenario& scenario_;
  PlannerOptions options_;
};

/// The schedule of a command that takes one (parse_single_schedule_option()). Throws Error where
/// it is refused.
[[nodiscard]] ScheduleResult choose_schedule(const ScheduleRequest& request,
                                             const Scenario& scenario,
                                             const PlannerOptions& options = {});

}  // namespace longhaul::planner
