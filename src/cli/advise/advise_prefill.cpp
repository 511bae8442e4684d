#include <algorithm>
#include <cmath>
#include <map>

#include "cli/advise/advised.hpp"
#include "cli/prefill/filled_schedule.hpp"
#include "planner/advice/idea_pool.hpp"
#include "prefill/outcome.hpp"

namespace longhaul::cli {
namespace {

using planner::AdvisedPlan;
using planner::Idea;
using planner::Score;

/// Plans of each set of ideas whose bubbles are filled, the fastest; of none all of them.
constexpr std::size_t kFilled = 3;
constexpr double kNanodollars = 1e9;

/// The fastest first.
std::vector<AdvisedPlan> by_time(std::vector<AdvisedPlan> plans) {
  std::ranges::stable_sort(plans, {}, &AdvisedPlan::makespan);
  return plans;
}

/// Nanodollars that the prompts of an iteration earn, and their tokens.
struct Earned {
  Score nanodollars = 0;
  double tokens = 0;
};

Earned earned_in(const AdvisedPlan& plan, const Scenario& scenario, const PrefillInput& input) {
  const FilledSchedule filled =
      fill_bubbles(bubbles_of(plan.schedule, scenario, Arrangement::decoupled), scenario, input);
  const auto iterations = std::max<std::int64_t>(1, filled.outcome.iterations);
  Earned earned;
  earned.tokens =
      static_cast<double>(filled.outcome.tokens_served) / static_cast<double>(iterations);
  earned.nanodollars = std::llround(earned.tokens * *input.price / 1e6 * kNanodollars);
  return earned;
}

}  // namespace

PrefillInput prompts_of(const Options& options, const Scenario& scenario) {
  PrefillArguments typed = options.prefill;
  typed.objective = "value";
  PrefillInput input = read_prefill_input(typed, scenario);
  if (scenario.served.empty())
    fail("--objective value: {} serves nothing (there is no [prefill]). Add one.", scenario.name);
  return input;
}

planner::Advice filled_advice(const planner::Advice& advice, const Scenario& scenario,
                              const PrefillInput& input) {
  const double gpu_hour = prefill::gpu_hour_of(scenario).value_or(kAssumedGpuHour);
  const double a_ns = scenario.training_ranks() * gpu_hour / 3600;  // nanodollars of all GPUs
  planner::IdeaPool pool;
  for (const planner::UnusedIdea& each : advice.unused) pool.refuse(each.idea, each.reason);
  std::map<unsigned long, std::size_t> filled;
  for (AdvisedPlan plan : by_time(advice.all)) {
    plan.score = std::llround(a_ns * static_cast<double>(plan.makespan.count()));
    pool.add(plan);
    pool.note_evaluated();
    if (!plan.overlap.empty()) continue;  // bubbles are those of whole blocks
    if (plan.ideas.any() && filled[plan.ideas.to_ulong()]++ >= kFilled) continue;
    const Earned earned = earned_in(plan, scenario, input);
    plan.ideas |= planner::only(Idea::prefill);
    plan.score -= earned.nanodollars;
    plan.prefill_tokens = earned.tokens;
    pool.add(std::move(plan));
  }
  planner::Advice found = pool.advice();
  found.evaluated = advice.evaluated;
  found.is_stopped = advice.is_stopped;
  return found;
}

}  // namespace longhaul::cli
