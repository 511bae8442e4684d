#include "planner/wan_sharing/share_wan.hpp"

#include <optional>

#include "base/error.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/turn_rules.hpp"
#include "schedule/share_wan.hpp"

namespace longhaul {

Schedule share_wan(const Schedule& schedule, const Scenario& scenario) {
  Schedule shared = in_cells(schedule, scenario);
  if (shared.cell == 1) return shared;
  take_turns_evenly(shared, scenario);
  const TurnProblem problem{shared, scenario};
  TurnEvaluator times{problem};
  std::optional<Schedule> best;
  Duration least{};
  for (const TurnRule rule : kTurnRules) {
    TurnOrders orders{problem};
    const bool runs = take_turns(problem, orders, rule, times);
    LONGHAUL_ASSERT(runs, "rows of {} wait for each other", schedule.name);
    Schedule made = to_schedule(problem, orders, shared);
    if (best && made == *best) continue;
    const Duration makespan = makespan_of(made, scenario);
    if (best && makespan >= least) continue;
    least = makespan;
    best = std::move(made);
  }
  return *std::move(best);
}

}  // namespace longhaul
