#pragma once

#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "planner/request.hpp"
#include "planner/robust/robust.hpp"
#include "planner/search/best.hpp"
#include "planner/solver/solver.hpp"

namespace longhaul::planner {

/// How schedules are made that have to be looked for.
struct PlannerOptions {
  SearchOptions search;  ///< of `best`; its arrangement is that of every schedule
  bool robust = false;   ///< `best` is picked by its tail under jitter
  SolverOptions solver;  ///< of `cross-ud-opt` and `cross-wave-opt`; arrangement as above
  /// Iterations that the search of an overlap simulates at most; nothing: as many as it takes.
  std::optional<std::size_t> overlap_evaluations{};
};

struct ScheduleResult {
  Schedule schedule;
  /// Of `best`: how it was found, as links were profiled; of the solver's: what it started from.
  std::optional<SearchResult> found = std::nullopt;
  std::optional<RobustChoice> robust = std::nullopt;  ///< of `best` under jitter: the candidates
  std::optional<SolverResult> solved = std::nullopt;  ///< of the solver's: what it proved
};

/// Makes what is asked for by name, not a file. One that is put in cells is planned on
/// pooled_links(), and shares the WAN under share_wan(). Refused where the schedule is not defined
/// on the scenario and, for those that are looked for, where nothing fits the budget.
Result<ScheduleResult> try_make(const ScheduleRequest& request, const Scenario& scenario,
                                const PlannerOptions& options = {});

/// The same by name. Throws Error where it is unknown or refused.
[[nodiscard]] ScheduleResult make_schedule(std::string_view name, const Scenario& scenario,
                                           const PlannerOptions& options = {});

}  // namespace longhaul::planner
