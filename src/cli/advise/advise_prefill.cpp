#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "cli/advise/advised.hpp"
#include "cli/prefill/filled_schedule.hpp"
#include "planner/advice/idea_pool.hpp"
#include "prefill/outcome.hpp"
#include "scenario/reader/stored_text.hpp"
#include "scenario/text/config_node.hpp"

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

std::string carried_text(const Scenario& scenario) {
  const std::string all = scenario::without_stored_options(scenario.text);
  const scenario::ConfigNode given =
      scenario::parse_toml(all, std::make_shared<const std::string>(scenario.name));
  scenario::ConfigNode taken;
  for (const char* table : {"prefill", "run"})
    if (const scenario::ConfigNode* const found = given.find(table)) assign(taken, table, *found);
  std::string held;  // files that the text holds
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size() - 1);
    if (all.compare(at, 3, "#: ") == 0) held += all.substr(at, end + 1 - at);
    at = end + 1;
  }
  return "\n" + toml_text(taken) + held;
}

planner::Advice filled_advice(const planner::Advice& advice,
                              const std::function<FilledPlace(const AdvisedPlan&)>& place,
                              const PrefillInput& input, std::size_t most,
                              const std::function<bool()>& stopped) {
  planner::IdeaPool pool;
  for (const planner::UnusedIdea& each : advice.unused) pool.refuse(each.idea, each.reason);
  pool.exclude(Idea::prefill, Idea::overlap, "bubbles that are filled are those of whole blocks");
  std::map<unsigned long, std::size_t> filled;
  bool is_stopped = advice.is_stopped;
  for (AdvisedPlan plan : by_score(advice.all)) {
    const FilledPlace where = place(plan);
    const double costs = where.dollars_per_hour / 3600 *  // nanodollars of a ns
                             static_cast<double>(plan.makespan.count()) +
                         where.egress_dollars * kNanodollars;
    plan.score = std::llround(costs / where.parts);
    pool.add(plan);
    pool.note_evaluated();
    is_stopped = is_stopped || (stopped && stopped());
    if (is_stopped) continue;
    if (!plan.overlap.empty()) continue;  // bubbles are those of whole blocks
    if (filled[plan.ideas.to_ulong()]++ >= (plan.ideas.any() ? kFilled : most)) continue;
    const Earned earned = earned_in(plan, where.scenario, input);
    plan.ideas |= planner::only(Idea::prefill);
    plan.score -= std::llround(where.copies * earned.nanodollars / where.parts);
    plan.prefill_tokens = where.copies * earned.tokens;
    pool.add(std::move(plan));
  }
  planner::Advice found = pool.advice();
  found.evaluated = advice.evaluated;
  found.is_stopped = is_stopped;
  return found;
}

}  // namespace longhaul::cli
