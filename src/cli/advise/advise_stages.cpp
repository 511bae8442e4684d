#include <limits>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/program/option_values.hpp"
#include "cli/advise/advised.hpp"
#include "planner/sites/cost.hpp"
#include "prefill/outcome.hpp"
#include "report/planning.hpp"
#include "report/record.hpp"
#include "report/scenario_text.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/memory.hpp"

namespace longhaul::cli {
namespace {

/// A placed scenario, and what makes it of its file: values of --set, the user's first.
struct PlacedScenario {
  Scenario scenario;
  std::vector<std::string> set;
};

void refuse_leavers(const Options& options, const Scenario& scenario) {
  if (!options.advise.without.empty())
    fail(
        "--without {}: the stages of {} have their places. Leave out `stages` of its datacenters "
        "(and give their `gpus`), so that they can be placed without it.",
        options.advise.without.front(), scenario.name);
}

/// Plans without a method sum what the scenario would exchange in parts.
PlacedScenario with_sums(const std::string& file, PlacedScenario placed) {
  if (placed.scenario.parallel.gradient_sync != GradientSync::compressed) return placed;
  placed.set.push_back(
      fmt::format("parallel.gradient_sync={}", to_string(GradientSync::all_reduce)));
  placed.scenario = scenario::load_scenario(file, placed.set);
  return placed;
}

/// Of all ranks, where each one's datacenter has a price.
std::optional<double> dollars_per_hour_of(const Scenario& scenario) {
  double dollars = 0;
  for (const DatacenterId where : scenario.placement) {
    const auto& price = scenario.datacenters[index(where)].price;
    if (!price) return std::nullopt;
    dollars += *price * prefill::gpus_of_rank(scenario);
  }
  return dollars;
}

std::optional<double> tokens_per_iteration_of(const Scenario& scenario) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return report::tokens_per_second(scenario, kSecond);  // of an iteration of one second
}

}  // namespace

planner::AdviceGoal goal_of(const Options& options) {
  return options.advise.objective.empty()
             ? planner::AdviceGoal::time
             : choice<planner::AdviceGoal>("--objective", options.advise.objective);
}

double egress_dollars_of(const Scenario& scenario) {
  double dollars = 0;
  if (!scenario.is_placed()) return dollars;
  for (const ReplicaId replica : scenario.replica_ids())
    for (int stage = 0; stage + 1 < scenario.parallel.stages; ++stage) {
      const DatacenterId from = scenario.datacenter_of(scenario.rank(replica, DeviceId{stage})),
                         to = scenario.datacenter_of(scenario.rank(replica, DeviceId{stage + 1}));
      if (from == to) continue;
      const double bytes = static_cast<double>(scenario.costs.message[to_size(stage)].count()) *
                           scenario.parallel.microbatches;
      for (const DatacenterId site : {from, to})
        dollars += planner::egress_dollars_of(bytes, scenario.datacenters[index(site)]);
    }
  return dollars;
}

Bytes memory_of(const planner::AdvisedPlan& plan, const Scenario& scenario) {
  if (!plan.overlap.empty()) return plan.peak;
  Bytes most;
  for (const schedule::DeviceNeed& need : schedule::device_memory(plan.schedule, scenario))
    most = std::max(most, need.total());
  return most;
}

PlanFacts facts_of_stages(const std::string& file, const Scenario& scenario,
                          std::vector<std::string> set) {
  PlanFacts facts;
  facts.scenario = file;
  facts.set = std::move(set);
  facts.gpus = std::int64_t{scenario.ranks()} * prefill::gpus_of_rank(scenario);
  facts.tokens_per_iteration = tokens_per_iteration_of(scenario);
  facts.dollars_per_hour = dollars_per_hour_of(scenario);
  facts.egress_dollars = egress_dollars_of(scenario);
  return facts;
}

Advised advised_of_stages(const Options& options, planner::AdviceOptions how,
                          const TrainingTerms& terms) {
  const std::string& file = options.files.front();
  const Scenario fixed =
      scenario::load_scenario(file, options.overrides, scenario::Placing::optional);
  if (fixed.placement.empty()) return advised_of_sites(options, std::move(how), terms);
  refuse_leavers(options, fixed);
  const planner::AdviceGoal goal = goal_of(options);
  if (goal == planner::AdviceGoal::cost)
    fail(
        "--objective {}: {} says how many GPUs it takes, so that the fastest plan is the cheapest. "
        "Leave out the stages of its datacenters (and give their gpus), so that they are placed, "
        "or "
        "parallel.stages, so that layouts are searched.",
        options.advise.objective, options.files.front());
  how.keeps_all = goal == planner::AdviceGoal::value;
  const PlacedScenario placed = with_sums(file, {scenario_of(options), options.overrides});
  const Scenario& scenario = placed.scenario;
  PlanFacts facts = facts_of_stages(file, scenario, placed.set);
  how.longest = longest_iteration(terms, facts.tokens_per_iteration, facts.gpus);
  how.methods = methods_of(options, scenario);
  std::optional<PrefillInput> prompts;
  if (goal == planner::AdviceGoal::value) prompts = prompts_of(options, scenario);
  std::optional<planner::SearchOptions> by_worth;
  if (prompts) by_worth = search_by_worth(how);
  FilledPlace where = place_of_stages(scenario);
  where.longest = how.longest;
  Advised advised;
  advised.advice = planner::advise(scenario, how).or_throw();
  advised.goal = goal;
  if (prompts)
    advised.advice =
        filled_advice(advised.advice, [&](const auto&) { return where; },
                      {*prompts, std::numeric_limits<std::size_t>::max(), by_worth, how.stopped});
  for (const planner::AdvisedPlan& plan : advised.advice.plans) {
    facts.memory = memory_of(plan, scenario);
    advised.facts.push_back(with_method(facts, plan, how.methods, scenario.train.costs));
  }
  advised.methods = how.methods;
  advised.header = record_header(options, scenario);
  advised.head = fmt::format("{}: {}", scenario.name, report::counted(scenario.ranks(), "rank"));
  return advised;
}

}  // namespace longhaul::cli
