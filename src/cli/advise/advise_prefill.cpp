#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "cli/advise/advised.hpp"
#include "cli/prefill/filled_schedule.hpp"
#include "planner/advice/idea_pool.hpp"
#include "planner/search/makespan.hpp"
#include "prefill/outcome.hpp"
#include "scenario/reader/stored_text.hpp"
#include "scenario/text/config_node.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity/validity.hpp"

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

Earned earned_by(std::int64_t tokens, std::int64_t iterations, const PrefillInput& input) {
  Earned earned;
  earned.tokens =
      static_cast<double>(tokens) / static_cast<double>(std::max<std::int64_t>(1, iterations));
  earned.nanodollars = earned.tokens * *input.price / 1e6 * kNanodollars;
  return earned;
}

Earned earned_in(const AdvisedPlan& plan, const Scenario& scenario, const PrefillInput& input) {
  const FilledSchedule filled =
      fill_bubbles(bubbles_of(plan.schedule, scenario, Arrangement::decoupled), scenario, input);
  return earned_by(filled.outcome.tokens_served, filled.outcome.iterations, input);
}

planner::Score cost_of(const AdvisedPlan& plan, const FilledPlace& where) {
  const double costs = where.dollars_per_hour / 3600 *  // nanodollars of a ns
                           static_cast<double>(plan.makespan.count()) +
                       where.egress_dollars * kNanodollars;
  return std::llround(costs / where.parts);
}

/// With its bubbles filled.
void add_filled(planner::IdeaPool& pool, AdvisedPlan plan, const FilledPlace& where,
                const Earned& earned) {
  plan.ideas |= planner::only(Idea::prefill);
  plan.score = cost_of(plan, where) - std::llround(where.copies * earned.nanodollars / where.parts);
  plan.prefill_tokens = where.copies * earned.tokens;
  pool.add(std::move(plan));
}

/// What the search by worth finds where a plan is, and what it chose from.
void add_worthiest(planner::IdeaPool& pool, const AdvisedPlan& like, const FilledPlace& where,
                   const PrefillInput& input, const planner::SearchOptions& search) {
  const Result<planner::WorthResult> found = try_best_by_value(search, where.scenario, input);
  if (!found) return;
  std::vector<planner::WorthCandidate> all = found->candidates;
  all.push_back({found->schedule, found->worth});
  for (planner::WorthCandidate& each : all) {
    pool.note_evaluated();
    if (schedule::first_violation(each.schedule, where.scenario)) continue;
    const Result<Duration> makespan = planner::try_makespan(each.schedule, where.scenario);
    if (!makespan || (where.longest && *makespan > *where.longest)) continue;
    AdvisedPlan plan;
    plan.ideas = planner::ideas_of(schedule::find_generator(each.schedule.name), each.schedule) |
                 (like.ideas & (planner::only(Idea::sites) | planner::only(Idea::layout)));
    plan.schedule = std::move(each.schedule);
    plan.makespan = *makespan;
    plan.scenario = like.scenario;
    add_filled(pool, std::move(plan), where,
               earned_by(each.worth.tokens, each.worth.iterations, input));
  }
}

/// The search by worth where the best plan is, and where the best one without prompts is.
void add_by_worth(planner::IdeaPool& pool,
                  const std::function<FilledPlace(const AdvisedPlan&)>& place,
                  const Filling& filling) {
  const planner::IdeaSet without = planner::IdeaSet{}.set() & ~planner::only(Idea::prefill);
  std::vector<AdvisedPlan> starts;
  for (const AdvisedPlan* const best : {pool.best(), pool.best_within(without)})
    if (best && std::ranges::find(starts, best->scenario, &AdvisedPlan::scenario) == starts.end())
      starts.push_back(*best);
  planner::SearchOptions search = *filling.by_worth;  // which spends its time twice
  search.time /= 2 * std::max<std::int64_t>(1, std::ssize(starts));
  for (const AdvisedPlan& each : starts) {
    if (filling.stopped && filling.stopped()) return pool.stop();
    add_worthiest(pool, each, place(each), filling.input, search);
  }
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
  const std::optional<double> price = prefill::gpu_hour_of(scenario);
  const int gpus = scenario.training_ranks() * prefill::gpus_of_rank(scenario);
  return {scenario, 1, gpus * price.value_or(kAssumedGpuHour),
          price ? egress_dollars_of(scenario) : 0};
}

std::string carried_text(const Scenario& scenario) {
  const std::string all = scenario::without_stored_options(scenario.text);
  const scenario::ConfigNode given =
      scenario::parse_toml(all, std::make_shared<const std::string>(scenario.name));
  scenario::ConfigNode taken;
  for (const char* table : {"prefill", "run"})
    if (const scenario::ConfigNode* const found = given.find(table)) assign(taken, table, *found);
  return "\n" + toml_text(taken) + held_lines(all);
}

planner::Advice filled_advice(const planner::Advice& advice,
                              const std::function<FilledPlace(const AdvisedPlan&)>& place,
                              const Filling& filling) {
  planner::IdeaPool pool;
  for (const planner::UnusedIdea& each : advice.unused) pool.refuse(each.idea, each.reason);
  pool.exclude(Idea::prefill, Idea::overlap, "bubbles that are filled are those of whole blocks");
  std::map<unsigned long, std::size_t> filled;
  if (advice.is_stopped) pool.stop();
  for (AdvisedPlan plan : by_score(advice.all)) {
    const FilledPlace where = place(plan);
    plan.score = cost_of(plan, where);
    pool.add(plan);
    if (filling.stopped && filling.stopped()) pool.stop();
    if (pool.is_stopped()) continue;
    if (!plan.overlap.empty()) continue;  // bubbles are those of whole blocks
    if (filled[plan.ideas.to_ulong()]++ >= (plan.ideas.any() ? kFilled : filling.most)) continue;
    const Earned earned = earned_in(plan, where.scenario, filling.input);
    add_filled(pool, std::move(plan), where, earned);
  }
  if (filling.by_worth && !pool.is_stopped()) add_by_worth(pool, place, filling);
  planner::Advice found = pool.advice();
  found.evaluated += advice.evaluated;  // what the search by worth chose from, too
  return found;
}

planner::SearchOptions search_by_worth(planner::AdviceOptions& how) {
  how.time /= 2;
  planner::SearchOptions search;
  search.time = how.time;
  search.moves = how.moves;
  search.threads = how.threads;
  search.stopped = how.stopped;
  return search;
}

}  // namespace longhaul::cli
