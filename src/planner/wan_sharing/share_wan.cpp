#include "planner/wan_sharing/share_wan.hpp"

#include <optional>

#include "base/error.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/collectives/time_alone.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/turn_search.hpp"
#include "schedule/generators/cell/in_cells.hpp"

namespace longhaul::planner {

Schedule share_wan(const Schedule& schedule, const Scenario& scenario) {
  return try_share_wan(schedule, scenario).or_throw();
}

Result<Schedule> try_share_wan(const Schedule& schedule, const Scenario& scenario) {
  Result<Schedule> cells = schedule::in_cells(schedule, scenario);
  if (!cells || cells->cell == 1) return cells;
  Schedule shared = *std::move(cells);
  schedule::take_turns_evenly(shared, scenario);
  const Result<Plan> plan =
      plan::try_lower(shared, scenario, Arrangement::decoupled, time_alone(scenario));
  if (!plan) return plan.refusal();
  const TurnProblem problem{shared, scenario, *plan};
  TurnEvaluator times{problem};
  std::optional<Schedule> best;
  Duration least{};
  for (const TurnRule rule : kTurnRules) {
    TurnOrders orders{problem};
    const bool runs = take_turns(problem, orders, rule, times);
    LONGHAUL_ASSERT(runs, "rows of {} wait for each other", schedule.name);
    Schedule made = to_schedule(problem, orders, shared);
    if (best && made == *best) continue;
    const Result<Duration> makespan = try_makespan(made, scenario);
    if (!makespan) return makespan.refusal();
    if (best && *makespan >= least) continue;
    least = *makespan;
    best = std::move(made);
  }
  return *std::move(best);
}

}  // namespace longhaul::planner
