#include "planner/search/candidates.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "planner/search/makespan.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul {
namespace {

bool is_wanted(const Generator& generator, const std::vector<Placement>& placements) {
  return placements.empty() ||
         std::ranges::find(placements, generator.placement) != placements.end();
}

/// Decoupled, on devices with memory enough.
bool can_run(const Schedule& schedule, const Scenario& scenario) {
  if (first_violation(schedule)) return false;
  try {
    static_cast<void>(makespan_of(schedule, scenario));
    return true;
  } catch (const Error&) {
    return false;  // a link is missing
  }
}

/// Throws Error with the reason where the schedule is not defined, does not fit or cannot run.
void add_candidate(const Generator& generator, const Scenario& scenario, Arrangement arrangement,
                   Candidates& candidates) {
  const Schedule schedule = generate(generator.name, scenario);
  // Rows and turns of their own for every pipeline are another search's.
  if (schedule.cell > 1)
    fail(
        "{} shares the WAN in cells of {} pipelines (best takes schedules whose pipelines send for "
        "themselves). Ask for atlas+best.",
        schedule.name, schedule.cell);
  try {
    if (const auto violation = first_violation(schedule, scenario)) throw Error{violation->text};
    candidates.fitting.push_back({schedule, makespan_of(schedule, scenario, arrangement)});
  } catch (const Error&) {
    if (can_run(schedule, scenario)) candidates.runnable.push_back(schedule);
    throw;
  }
}

}  // namespace

Candidates find_candidates(const Scenario& scenario, Arrangement arrangement,
                           const std::vector<Placement>& placements) {
  Candidates candidates;
  for (const Generator& generator : generators()) {
    if (!is_wanted(generator, placements)) continue;
    try {
      add_candidate(generator, scenario, arrangement, candidates);
    } catch (const Error& error) {
      candidates.rejected.push_back({std::string{generator.name}, error.what()});
    }
  }
  std::ranges::stable_sort(candidates.fitting, {}, &Candidate::makespan);
  return candidates;
}

}  // namespace longhaul
