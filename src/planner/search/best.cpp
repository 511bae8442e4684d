#include "planner/search/best.hpp"

#include <algorithm>
#include <optional>

#include "planner/orders/whole_blocks.hpp"
#include "planner/search/makespan.hpp"
#include "planner/search/portfolio.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul {
namespace {

/// One schedule of every layout that can run, within the budget or not.
std::vector<Schedule> runnable_layouts(const Candidates& candidates) {
  std::vector<Schedule> layouts;
  const auto add = [&](const Schedule& schedule) {
    const bool known = std::ranges::any_of(layouts, [&](const Schedule& layout) {
      return layout.copies == schedule.copies && layout.device_of_chunk == schedule.device_of_chunk;
    });
    if (!known) layouts.push_back(schedule);
  };
  for (const Candidate& candidate : candidates.fitting) add(candidate.schedule);
  for (const Schedule& schedule : candidates.runnable) add(schedule);
  return layouts;
}

/// The smallest budget at which a schedule of one of the layouts fits: one microbatch at a time
/// needs no more than every schedule of its layout does at some moment. nullopt: one fits already.
std::optional<double> smallest_budget(const std::vector<Schedule>& layouts,
                                      const Scenario& scenario) {
  std::optional<double> smallest;
  for (const Schedule& layout : layouts) {
    const Schedule serial = serial_schedule(layout, scenario.memory.recompute);
    if (over_budget(serial, scenario).empty()) return std::nullopt;
    const double needed =
        least_budget(std::ranges::max(peak_activation(serial, scenario)), serial, scenario);
    if (!smallest || needed < *smallest) smallest = needed;
  }
  return smallest;
}

Refusal why_no_schedule(const std::vector<Schedule>& layouts, const Candidates& candidates,
                        const Scenario& scenario) {
  if (layouts.empty()) {
    std::string reasons;
    for (const RejectedCandidate& rejected : candidates.rejected)
      reasons += fmt::format("\n  {}: {}", rejected.schedule, rejected.reason);
    return refused(
        "There is no schedule to choose from (each one is refused). Change the scenario:{}",
        reasons);
  }
  if (const auto budget = smallest_budget(layouts, scenario)) {
    return refused(
        "No schedule fits memory.budget = {} (one microbatch at a time needs {}). Set "
        "memory.budget to {} or more.",
        scenario.memory.budget, *budget, *budget);
  }
  const Schedule serial = serial_schedule(layouts.front(), scenario.memory.recompute);
  const auto violation = first_violation(serial, scenario);
  return refused(
      "No schedule fits the memory of the devices, not even one microbatch at a time: {}",
      violation ? violation->text : std::string{"every order exceeds it."});
}

}  // namespace

SearchResult find_best(const Scenario& scenario, const SearchOptions& options) {
  return try_find_best(scenario, options).or_throw();
}

Result<SearchResult> try_find_best(const Scenario& scenario, const SearchOptions& options) {
  SearchResult found;
  Portfolio portfolio{scenario, options};
  found.candidates = find_candidates(scenario, options.arrangement, options.placements);
  const auto layouts = runnable_layouts(found.candidates);
  for (const Schedule& layout : layouts) portfolio.add_layout(layout);
  for (const Candidate& candidate : found.candidates.fitting)
    portfolio.add(candidate.schedule, candidate.makespan);
  portfolio.add_own_starts();
  if (portfolio.starts().empty() && found.candidates.fitting.empty())
    return why_no_schedule(layouts, found.candidates, scenario);
  found.bound = lower_bound_of_any(layouts, scenario);
  if (!portfolio.starts().empty()) {
    Portfolio::Outcome result = portfolio.run();
    found.moves = result.moves;
    found.accepted = result.accepted;
    found.started_from = result.schedule.name;
    found.makespan = makespan_of(result.schedule, scenario, options.arrangement);
    found.schedule = std::move(result.schedule);
  }
  // A candidate in parts, or with rows of its own for each replica, may be out of the search's
  // reach.
  if (!found.candidates.fitting.empty()) {
    const Candidate& candidate = found.candidates.fitting.front();
    if (found.started_from.empty() || candidate.makespan < found.makespan) {
      found.started_from = candidate.schedule.name;
      found.makespan = candidate.makespan;
      found.schedule = candidate.schedule;
    }
  }
  found.schedule.name = "best";
  return found;
}

}  // namespace longhaul
