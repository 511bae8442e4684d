#include "planner/search/candidates.hpp"

#include <algorithm>

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
  return !first_violation(schedule) &&
         !why_not_runnable(schedule, scenario, Arrangement::decoupled);
}

/// Within the budget.
Result<Duration> time_within_budget(const Schedule& schedule, const Scenario& scenario,
                                    Arrangement arrangement) {
  if (auto violation = first_violation(schedule, scenario)) return Refusal{violation->text};
  return try_makespan(schedule, scenario, arrangement);
}

/// The reason where the schedule is not defined, does not fit or cannot run.
std::optional<Refusal> add_candidate(const Generator& generator, const Scenario& scenario,
                                     Arrangement arrangement, Candidates& candidates) {
  const Result<Schedule> schedule = try_generate(generator, scenario);
  if (!schedule) return schedule.refusal();
  // Rows and turns of their own for every pipeline are another search's.
  if (schedule->cell > 1)
    return refused(
        "{} shares the WAN in cells of {} pipelines (best takes schedules whose pipelines send for "
        "themselves). Ask for {}.",
        schedule->name, schedule->cell, shared_name("best"));
  const Result<Duration> makespan = time_within_budget(*schedule, scenario, arrangement);
  if (makespan) {
    candidates.fitting.push_back({*schedule, *makespan});
    return std::nullopt;
  }
  if (can_run(*schedule, scenario)) candidates.runnable.push_back(*schedule);
  return makespan.refusal();
}

}  // namespace

Candidates find_candidates(const Scenario& scenario, Arrangement arrangement,
                           const std::vector<Placement>& placements) {
  Candidates candidates;
  for (const Generator& generator : generators()) {
    if (!is_wanted(generator, placements)) continue;
    if (auto why = add_candidate(generator, scenario, arrangement, candidates))
      candidates.rejected.push_back({std::string{generator.name}, std::move(why->reason)});
  }
  std::ranges::stable_sort(candidates.fitting, {}, &Candidate::makespan);
  return candidates;
}

}  // namespace longhaul
