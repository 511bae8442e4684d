#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/program/option_values.hpp"
#include "cli/advise/advised.hpp"
#include "cli/plan/plan.hpp"
#include "planner/sites/cell_scenario.hpp"
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
  std::string placed;  ///< in words; empty: its file does
};

/// "datacenter.west.stages=\"0-3\"" for each datacenter of the layout and none for the others,
/// replicas and cells.
std::vector<std::string> overrides_of(const Scenario& open, const planner::GpuInventory& inventory,
                                      const planner::SiteLayout& layout) {
  std::vector<std::string> set;
  std::set<std::string> used;
  int first = 0;
  for (const planner::DatacenterStages& share : layout.placement) {
    used.insert(inventory.name(share.datacenter));
    set.push_back(fmt::format("datacenter.{}.stages=\"{}-{}\"", inventory.name(share.datacenter),
                              first, first + share.stages - 1));
    first += share.stages;
  }
  for (const Datacenter& datacenter : open.datacenters)
    if (!used.contains(datacenter.name))
      set.push_back(fmt::format("datacenter.{}.stages=[]", datacenter.name));
  set.push_back(fmt::format("parallel.replicas={}", layout.replicas()));
  set.push_back(fmt::format("parallel.cell={}", layout.pipelines));
  return set;
}

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

PlacedScenario placed_scenario_of(const Options& options) {
  const std::string& file = options.files.front();
  const std::vector<std::string> given = overrides_with_leavers(options);
  if (Scenario fixed =
          scenario::load_scenario(file, options.overrides, scenario::Placing::optional);
      !fixed.placement.empty()) {
    refuse_leavers(options, fixed);
    return {scenario_of(options), options.overrides, ""};
  }
  const Scenario open = scenario::load_scenario(file, given, scenario::Placing::optional);
  const planner::GpuInventory inventory{open};
  PlanOptions plan = plan_options_of({}, "");
  plan.exact = true;
  planner::CellTimes cells{inventory, plan.model, plan.threads};
  const planner::SitePlan best = best_of(inventory, plan, cells);
  PlacedScenario placed;
  placed.set = given;
  for (const std::string& each : overrides_of(open, inventory, best.layout))
    placed.set.push_back(each);
  placed.placed = fmt::format(
      "{}, {} of {}: the most iterations a second of one pipeline each, by "
      "{} (longhaul plan --search exact)",
      planner::to_text(inventory, best.layout.placement),
      report::counted(best.layout.cells, "cell"),
      report::counted(best.layout.pipelines, "pipeline"), best.schedule);
  placed.scenario = scenario::load_scenario(file, placed.set);
  return placed;
}

Bytes memory_of(const planner::AdvisedPlan& plan, const Scenario& scenario) {
  Bytes most;
  for (const schedule::DeviceNeed& need : schedule::device_memory(plan.schedule, scenario))
    most = std::max(most, need.total());
  return most;
}

/// Of all ranks, where each one's datacenter has a price.
std::optional<double> dollars_per_hour_of(const Scenario& scenario) {
  double dollars = 0;
  for (const DatacenterId where : scenario.placement) {
    const auto& price = scenario.datacenters[index(where)].price;
    if (!price) return std::nullopt;
    dollars += *price * (scenario.model ? scenario.model->tensor_parallel : 1);
  }
  return dollars;
}

std::optional<double> tokens_per_iteration_of(const Scenario& scenario) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return report::tokens_per_second(scenario, kSecond);  // of an iteration of one second
}

}  // namespace

Advised advised_of_stages(const Options& options, planner::AdviceOptions how,
                          const TrainingTerms& terms) {
  const planner::AdviceGoal goal =
      options.advise.objective.empty()
          ? planner::AdviceGoal::time
          : choice<planner::AdviceGoal>("--objective", options.advise.objective);
  if (goal == planner::AdviceGoal::cost)
    fail(
        "--objective {}: {} says how many GPUs it takes, so that the fastest plan is the cheapest. "
        "Leave out parallel.stages, so that layouts are searched.",
        options.advise.objective, options.files.front());
  how.keeps_all = goal == planner::AdviceGoal::value;
  const PlacedScenario placed = with_sums(options.files.front(), placed_scenario_of(options));
  const Scenario& scenario = placed.scenario;
  PlanFacts facts;
  facts.scenario = options.files.front();
  facts.set = placed.set;
  facts.gpus =
      std::int64_t{scenario.ranks()} * (scenario.model ? scenario.model->tensor_parallel : 1);
  facts.tokens_per_iteration = tokens_per_iteration_of(scenario);
  facts.dollars_per_hour = dollars_per_hour_of(scenario);
  how.longest = longest_iteration(terms, facts.tokens_per_iteration, facts.gpus);
  how.methods = methods_of(options, scenario);
  std::optional<PrefillInput> prompts;
  if (goal == planner::AdviceGoal::value) prompts = prompts_of(options, scenario);
  Advised advised;
  advised.advice = planner::advise(scenario, how).or_throw();
  advised.goal = goal;
  if (prompts)
    advised.advice = filled_advice(
        advised.advice, [&](const auto&) { return place_of_stages(scenario); }, *prompts,
        std::numeric_limits<std::size_t>::max(), how.stopped);
  for (const planner::AdvisedPlan& plan : advised.advice.plans) {
    facts.memory = memory_of(plan, scenario);
    advised.facts.push_back(with_method(facts, plan, how.methods));
  }
  advised.methods = how.methods;
  advised.header = record_header(options, scenario);
  advised.head = fmt::format("{}: {}", scenario.name, report::counted(scenario.ranks(), "rank"));
  advised.placed = placed.placed;
  return advised;
}

}  // namespace longhaul::cli
