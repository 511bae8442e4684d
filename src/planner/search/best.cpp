#include "planner/search/best.hpp"

#include <algorithm>
#include <optional>

#include "planner/orders/orders.hpp"
#include "planner/orders/starts.hpp"
#include "planner/search/makespan.hpp"
#include "planner/search/portfolio.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

bool is_wanted(const schedule::Generator& generator,
               const std::vector<schedule::Placement>& placements) {
  return placements.empty() ||
         std::ranges::find(placements, generator.placement) != placements.end();
}

/// Decoupled, on devices with memory enough.
bool can_run(const Schedule& schedule, const Scenario& scenario) {
  return !schedule::first_violation(schedule) &&
         !why_not_runnable(schedule, scenario, Arrangement::decoupled);
}

/// The makespan; refused beyond the budget.
Result<Duration> time_within_budget(const Schedule& schedule, const Scenario& scenario,
                                    Arrangement arrangement) {
  if (auto violation = schedule::first_violation(schedule, scenario))
    return Refusal{violation->text};
  return try_makespan(schedule, scenario, arrangement);
}

/// The reason where the schedule is not defined, does not fit or cannot run.
std::optional<Refusal> add_candidate(const schedule::Generator& generator, const Scenario& scenario,
                                     Arrangement arrangement, Candidates& candidates) {
  const Result<Schedule> schedule = schedule::try_generate(generator, scenario);
  if (!schedule) return schedule.refusal();
  // Rows and turns of their own for every pipeline are another search's.
  if (schedule->cell > 1) {
    candidates.in_cells.push_back(*schedule);
    return refused(
        "{} shares the WAN in cells of {} pipelines (best takes schedules whose pipelines send for "
        "themselves). Ask for {}.",
        schedule->name, schedule->cell, schedule::shared_name("best"));
  }
  const Result<Duration> makespan = time_within_budget(*schedule, scenario, arrangement);
  if (makespan) {
    candidates.fitting.push_back({*schedule, *makespan});
    return std::nullopt;
  }
  if (can_run(*schedule, scenario)) candidates.runnable.push_back(*schedule);
  return makespan.refusal();
}

/// Its entry in the registry.
const schedule::Generator* place_of(const Schedule& schedule) {
  return schedule::find_generator(schedule.name);
}

/// All generators; those whose schedules tend to be the shortest first.
std::vector<const schedule::Generator*> by_promise() {
  std::vector<const schedule::Generator*> sorted;
  for (const schedule::Generator& generator : schedule::generators()) sorted.push_back(&generator);
  std::ranges::stable_sort(sorted, {}, [](const schedule::Generator* generator) {
    return std::pair{generator->backward == schedule::Backward::whole,
                     schedule::is_static(generator->knowledge)};
  });
  return sorted;
}

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
    if (schedule::over_budget(serial, scenario).empty()) return std::nullopt;
    const double needed = schedule::least_budget(
        std::ranges::max(schedule::peak_activation(serial, scenario)), serial, scenario);
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
  const auto violation = schedule::first_violation(serial, scenario);
  return refused(
      "No schedule fits the memory of the devices, not even one microbatch at a time: {}",
      violation ? violation->text : std::string{"every order exceeds it."});
}

}  // namespace

Candidates find_candidates(const Scenario& scenario, Arrangement arrangement,
                           const std::vector<schedule::Placement>& placements,
                           const std::function<bool()>& enough) {
  Candidates candidates;
  for (const schedule::Generator* generator : by_promise()) {
    if (!is_wanted(*generator, placements)) continue;
    const bool unseen = enough && !candidates.fitting.empty() && enough();
    auto why = unseen ? refused(
                            "the time of candidates was over before it (the rest is for moves). "
                            "Give the search more time.")
                      : add_candidate(*generator, scenario, arrangement, candidates);
    if (why)
      candidates.rejected.push_back({std::string{generator->name}, std::move(why->reason), unseen});
  }
  std::ranges::sort(candidates.rejected, {}, [](const RejectedCandidate& rejected) {
    return schedule::find_generator(rejected.schedule);
  });
  std::ranges::sort(candidates.runnable, {}, place_of);
  std::ranges::sort(candidates.in_cells, {}, place_of);
  std::ranges::sort(candidates.fitting, {}, [](const Candidate& candidate) {
    return std::pair{candidate.makespan, place_of(candidate.schedule)};
  });
  return candidates;
}

SearchResult find_best(const Scenario& scenario, const SearchOptions& options) {
  return try_find_best(scenario, options).or_throw();
}

Result<SearchResult> try_find_best(const Scenario& scenario, const SearchOptions& options) {
  SearchResult found;
  Portfolio portfolio{scenario, options};
  found.candidates = find_candidates(scenario, options.arrangement, options.placements,
                                     [&] { return portfolio.is_late(); });
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

}  // namespace longhaul::planner
