#include "planner/make_schedule.hpp"

#include "base/error.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "schedule/generators/cell/in_cells.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::planner {
namespace {

Result<ScheduleResult> made_of(Result<SearchResult> found) {
  if (!found) return found.refusal();
  Schedule schedule = found->schedule;
  return ScheduleResult{std::move(schedule), *std::move(found)};
}

Result<ScheduleResult> make_robust(const Scenario& scenario, const PlannerOptions& options) {
  RobustOptions robust;
  robust.search = options.search;
  Result<RobustChoice> choice = pick_robust(scenario, robust);
  if (!choice) return choice.refusal();
  ScheduleResult made{choice->schedule, choice->as_profiled};
  made.robust = *std::move(choice);
  return made;
}

Result<ScheduleResult> make_shared_best(const Scenario& scenario, const PlannerOptions& options) {
  if (options.robust)
    fail("{} knows no jitter (its turns are made for the links as profiled). Leave out --robust.",
         schedule::shared_name("best"));
  return made_of(find_shared_best(scenario, options.search));
}

/// The solver starts from the best schedule of its placement that a search finds.
Result<ScheduleResult> make_solved(schedule::Placement placement, const Scenario& scenario,
                                   const PlannerOptions& options) {
  if (scenario.overlap.largest() > 1)
    return refused(
        "{} is found by a solver whose model has blocks of one length (with [overlap] messages "
        "make them longer). Take best, whose search simulates them, or leave [overlap] out.",
        placement == schedule::Placement::wave ? "cross-wave-opt" : "cross-ud-opt");
  SearchOptions search = options.search;
  search.placements = {placement};
  SolverOptions solver = options.solver;
  solver.arrangement = search.arrangement;
  if (search.threads > 0) solver.threads = search.threads;
  Result<SearchResult> start = try_find_best(scenario, search);
  if (!start) return start.refusal();
  SolverResult solved = solve(placement, scenario, start->schedule, solver);
  Schedule schedule = solved.schedule;
  return ScheduleResult{std::move(schedule), *std::move(start), std::nullopt, std::move(solved)};
}

Result<ScheduleResult> look_for(ScheduleSearch search, const Scenario& scenario,
                                const PlannerOptions& options) {
  switch (search) {
    case ScheduleSearch::best:
      return options.robust ? make_robust(scenario, options)
                            : made_of(try_find_best(scenario, options.search));
    case ScheduleSearch::shared_best: return make_shared_best(scenario, options);
    case ScheduleSearch::cross_ud_opt:
      return make_solved(schedule::Placement::unidirectional, scenario, options);
    case ScheduleSearch::cross_wave_opt:
      return make_solved(schedule::Placement::wave, scenario, options);
  }
  return refused("no such search");
}

Result<ScheduleResult> make_alone(const ScheduleRequest& request, const Scenario& scenario,
                                  const PlannerOptions& options) {
  if (request.search) return look_for(*request.search, scenario, options);
  LONGHAUL_ASSERT(request.generator != nullptr, "{} is a file", request.name);
  Result<Schedule> schedule = schedule::try_generate(*request.generator, scenario);
  if (!schedule) return schedule.refusal();
  return ScheduleResult{*std::move(schedule)};
}

}  // namespace

Result<ScheduleResult> try_make(const ScheduleRequest& request, const Scenario& scenario,
                                const PlannerOptions& options) {
  if (scenario.has_uneven_replicas() && (request.search || request.put_in_cells))
    return refused(
        "{} plans for replicas of equal costs and microbatches (these differ). Name a schedule "
        "that "
        "is not looked for.",
        request.name);
  if (!request.put_in_cells) return make_alone(request, scenario, options);
  // It plans on the links as a pipeline has them while it is its turn.
  const Result<ScheduleResult> alone =
      make_alone(request, schedule::pooled_links(scenario), options);
  if (!alone) return alone.refusal();
  Result<Schedule> shared = try_share_wan(alone->schedule, scenario);
  if (!shared) return shared.refusal();
  return ScheduleResult{*std::move(shared)};
}

ScheduleResult make_schedule(std::string_view name, const Scenario& scenario,
                             const PlannerOptions& options) {
  return try_make(parse_schedule(name), scenario, options).or_throw();
}

}  // namespace longhaul::planner
