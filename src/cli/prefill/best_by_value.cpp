#include <cmath>

#include "base/error.hpp"
#include "base/program/program.hpp"
#include "cli/prefill/filled_schedule.hpp"
#include "planner/plan_memory.hpp"
#include "planner/search/worth.hpp"
#include "prefill/outcome.hpp"

namespace longhaul::cli {

planner::Worth worth_of(const FilledSchedule& filled, double per_second) {
  const prefill::Outcome& outcome = filled.outcome;
  return {.per_second = per_second,
          .wait = Duration{std::llround(outcome.parts.wait)},
          .period = filled.bubbles.iteration.period,
          .tokens = outcome.tokens_served,
          .ttft_p99 = outcome.ttft ? std::optional{outcome.ttft->p99} : std::nullopt,
          .iterations = outcome.iterations};
}

Result<planner::WorthResult> try_best_by_value(const planner::SearchOptions& search,
                                               const Scenario& scenario,
                                               const PrefillInput& input) {
  const double rank_hour =
      prefill::gpu_hour_of(scenario).value_or(kAssumedGpuHour) * prefill::gpus_of_rank(scenario);
  const auto judge = [&](const Schedule& schedule,
                         Duration fastest) -> std::optional<planner::Worth> {
    Result<SimulatedBubbles> bubbles = try_bubbles_of(schedule, scenario, search.arrangement);
    if (!bubbles) return std::nullopt;
    const FilledSchedule filled = place_prompts(*std::move(bubbles), scenario, input);
    return worth_of(filled, value_per_second(filled, rank_hour, fastest, *input.price));
  };
  return planner::try_find_worthiest(scenario, search, judge);
}

planner::WorthResult find_best_by_value(const Options& options, const Scenario& scenario,
                                        const PrefillInput& input) {
  const planner::PlannerOptions planner = planner_options_of(options);
  if (planner.robust)
    fail(
        "--robust: it knows no prompts (best is picked by its tail). Leave it or --objective out.");
  planner::require_plan_memory(scenario, planner::free_memory());
  const Progress progress{"looking for the schedule that is worth most", 1};
  return try_best_by_value(planner.search, scenario, input).or_throw();
}

}  // namespace longhaul::cli
