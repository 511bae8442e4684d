#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/robust/robust.hpp"
#include "planner/search/best.hpp"
#include "planner/solver/solver.hpp"

namespace longhaul {

/// How schedules are made that have to be looked for.
struct PlannerOptions {
  SearchOptions search;  ///< of `best`; its arrangement is that of every schedule
  bool robust = false;   ///< `best` is picked by its tail under jitter
  SolverOptions solver;  ///< of `cross-ud-opt` and `cross-wave-opt`; arrangement as above
};

struct ScheduleResult {
  Schedule schedule;
  /// Of `best`: how it was found, as links were profiled; of the solver's: what it started from.
  std::optional<SearchResult> found;
  std::optional<RobustChoice> robust;  ///< of `best` under jitter: what it was chosen from
  std::optional<SolverResult> solved;  ///< of the solver's: what it proved
};

/// A schedule that someone may ask for by name.
struct ScheduleName {
  std::string name;
  std::string summary;  ///< one line, for lists
};

/// All of them, in the order of a report: static, dynamic, those that are looked for.
[[nodiscard]] const std::vector<ScheduleName>& schedule_names();

/// Is it found by a search or a solver, which may take long?
[[nodiscard]] bool is_looked_for(std::string_view name);

struct RequestedSchedule {
  std::string name;         ///< or the path of a file
  bool from_group = false;  ///< came with a group, so that it need not be defined
};
/// Expands a comma list: names, files (.csv), and the groups `static` (counts decide), `dynamic`
/// (times decide) and `shared` (pipelines take turns on the WAN). Throws Error on unknown names
/// (with the nearest known one) and on repeated ones.
[[nodiscard]] std::vector<RequestedSchedule> requested_schedules(std::string_view list);

/// Makes the schedule `name`; "atlas+NAME" is NAME, planned on pooled_links(), under share_wan().
/// Throws Error for an unknown name, where the schedule is not defined
/// on the scenario and, for those that are looked for, where nothing fits the budget.
[[nodiscard]] ScheduleResult make_schedule(std::string_view name, const Scenario& scenario,
                                           const PlannerOptions& options = {});

}  // namespace longhaul
