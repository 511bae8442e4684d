#include "planner/best.hpp"

#include "base/error.hpp"
#include "planner/makespan.hpp"
#include "planner/search.hpp"

namespace longhaul {

Found find_best(const Scenario& scenario, const SearchOptions& options) {
  Found found;
  found.candidates = find_candidates(scenario, options.arrangement, options.placements);
  if (found.candidates.fitting.empty())
    fail("No schedule fits memory.budget = {} (every one needs more). Raise memory.budget.",
         scenario.memory.budget);
  const Candidate& start = found.candidates.fitting.front();
  found.started_from = start.schedule.name;
  found.schedule = start.schedule;
  found.schedule.name = "best";
  found.makespan = makespan_of(found.schedule, scenario, options.arrangement);
  return found;
}

}  // namespace longhaul
