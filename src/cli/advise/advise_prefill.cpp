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

/// Plans of each set of ideas whose bubbles are filled, the best without.
constexpr std::size_t kFilled = 3;
constexpr double kNanodollars = 1e9;

/// The best without prompts first.
std::vector<AdvisedPlan> by_score(std::vector<AdvisedPlan> plans) {
  std::ranges::stable_sort(plans, {}, &AdvisedPlan::score);
  return plans;
}

/// Nanodollars that the prompts of an iteration earn, and their tokens.
struct Earned {
  double nanodollars = 0;
  double tokens = 0;
};

Earned earned_in(const AdvisedPlan& plan, const Scenario& scenario, const PrefillInput& input) {
  const FilledSchedule filled =
      fill_bubbles(bubbles_of(plan.schedule, scenario, Arrangement::decoupled), scenario, input);
  const auto iterations = std::max<std::int64_t>(1, filled.outcome.iterations);
  Earned earned;
  earned.tokens =
      static_cast<double>(filled.outcome.tokens_served) / static_cast<double>(iterations);
  earned.nanodollars = earned.tokens * *input.price / 1e6 * kNanodollars;
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

FilledPlace place_of_stages(const Scenario& scenario) {
  const double gpu_hour = prefill::gpu_hour_of(scenario).value_or(kAssumedGpuHour);
  return {scenario, 1, scenario.training_ranks() * gpu_hour};
}

std::string prefill_text(const Scenario& scenario) {
  std::string text, held;
  bool is_prefill = false;
  for (std::size_t at = 0; at < scenario.text.size();) {
    const std::size_t end = std::min(scenario.text.find('\n', at), scenario.text.size() - 1);
    const std::string line = scenario.text.substr(at, end + 1 - at);
    at = end + 1;
    if (line.starts_with("#: ")) {  // files that the text holds
      held += line;
      continue;
    }
    if (line.starts_with('['))
      is_prefill = line.starts_with("[prefill]") || line.starts_with("[[prefill]]") ||
                   line.starts_with("[prefill.");
    if (is_prefill) text += line;
  }
  if (text.empty())
    fail("--objective value: {} has no [prefill] of its own lines. Write it as a table.",
         scenario.name);
  return "\n" + text + held;
}

planner::Advice filled_advice(const planner::Advice& advice,
                              const std::function<FilledPlace(const AdvisedPlan&)>& place,
                              const PrefillInput& input, std::size_t most) {
  planner::IdeaPool pool;
  for (const planner::UnusedIdea& each : advice.unused) pool.refuse(each.idea, each.reason);
  std::map<unsigned long, std::size_t> filled;
  for (AdvisedPlan plan : by_score(advice.all)) {
    const FilledPlace where = place(plan);
    plan.score = std::llround(where.dollars_per_hour / 3600 *  // nanodollars of a ns
                              static_cast<double>(plan.makespan.count()));
    pool.add(plan);
    pool.note_evaluated();
    if (!plan.overlap.empty()) continue;  // bubbles are those of whole blocks
    if (filled[plan.ideas.to_ulong()]++ >= (plan.ideas.any() ? kFilled : most)) continue;
    const Earned earned = earned_in(plan, where.scenario, input);
    plan.ideas |= planner::only(Idea::prefill);
    plan.score -= std::llround(where.copies * earned.nanodollars);
    plan.prefill_tokens = where.copies * earned.tokens;
    pool.add(std::move(plan));
  }
  planner::Advice found = pool.advice();
  found.evaluated = advice.evaluated;
  found.is_stopped = advice.is_stopped;
  return found;
}

}  // namespace longhaul::cli
