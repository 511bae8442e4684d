#include "planner/candidates.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "planner/makespan.hpp"
#include "schedule/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity.hpp"

namespace longhaul {
namespace {

bool is_wanted(const Generator& generator, const std::vector<Placement>& placements) {
  return placements.empty() ||
         std::ranges::find(placements, generator.placement) != placements.end();
}

/// Throws Error with the reason where the schedule is not defined, does not fit or cannot run.
Candidate make_candidate(const Generator& generator, const Scenario& scenario,
                         Arrangement arrangement) {
  Candidate candidate{generate(generator.name, scenario), {}};
  if (const auto violation = first_violation(candidate.schedule, scenario))
    throw Error{violation->text};
  candidate.makespan = makespan_of(candidate.schedule, scenario, arrangement);
  return candidate;
}

}  // namespace

Candidates find_candidates(const Scenario& scenario, Arrangement arrangement,
                           const std::vector<Placement>& placements) {
  Candidates candidates;
  for (const Generator& generator : generators()) {
    if (!is_wanted(generator, placements)) continue;
    try {
      candidates.fitting.push_back(make_candidate(generator, scenario, arrangement));
    } catch (const Error& error) {
      candidates.rejected.push_back({std::string{generator.name}, error.what()});
    }
  }
  std::ranges::stable_sort(candidates.fitting, {}, &Candidate::makespan);
  return candidates;
}

}  // namespace longhaul
