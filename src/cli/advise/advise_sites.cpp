#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/program/option_values.hpp"
#include "cli/advise/advised.hpp"
#include "planner/advice/site_advice.hpp"
#include "planner/sites/cost.hpp"
#include "report/record.hpp"
#include "report/scenario_text.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::cli {
namespace {

using planner::AdviceGoal;
using planner::GpuInventory;
using planner::SiteLayout;

constexpr const char* kWhyNoneIsBelow =
    "GPUs that compute all the time where that is best, as many pipelines as there are GPUs for";

/// "datacenter.west.stages=\"0-3\"" for each datacenter of the layout and none for the others,
/// replicas and cells, after what was given.
std::vector<std::string> overrides_of(std::vector<std::string> set, const GpuInventory& inventory,
                                      const SiteLayout& layout) {
  std::set<std::string> used;
  int first = 0;
  for (const planner::DatacenterStages& share : layout.placement) {
    used.insert(inventory.name(share.datacenter));
    set.push_back(fmt::format("datacenter.{}.stages=\"{}-{}\"", inventory.name(share.datacenter),
                              first, first + share.stages - 1));
    first += share.stages;
  }
  for (const Datacenter& datacenter : inventory.scenario().datacenters)
    if (!used.contains(datacenter.name))
      set.push_back(fmt::format("datacenter.{}.stages=[]", datacenter.name));
  set.push_back(fmt::format("parallel.replicas={}", layout.replicas()));
  set.push_back(fmt::format("parallel.cell={}", layout.pipelines));
  return set;
}

std::string place_text(const GpuInventory& inventory, const SiteLayout& layout) {
  return fmt::format("{}, {} of {}", planner::to_text(inventory, layout.placement),
                     report::counted(layout.cells, "cell"),
                     report::counted(layout.pipelines, "pipeline"));
}

nlohmann::ordered_json place_json(const GpuInventory& inventory, const SiteLayout& layout) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (const planner::DatacenterStages& share : layout.placement)
    stages.push_back({{"datacenter", inventory.name(share.datacenter)}, {"stages", share.stages}});
  return {{"placement", std::move(stages)},
          {"replicas", layout.replicas()},
          {"cells", layout.cells},
          {"pipelines", layout.pipelines}};
}

/// The user's --set, datacenters that leave, and sums where the scenario would exchange parts.
std::vector<std::string> given_overrides(const Options& options) {
  std::vector<std::string> set = overrides_with_leavers(options);
  const Scenario open =
      scenario::load_scenario(options.files.front(), set, scenario::Placing::optional);
  if (open.parallel.gradient_sync == GradientSync::compressed)
    set.push_back(fmt::format("parallel.gradient_sync={}", to_string(GradientSync::all_reduce)));
  return set;
}

/// GPUs and egress as the site planner counts them.
FilledPlace filled_place(const GpuInventory& inventory, const planner::AdvisedPlace& place) {
  FilledPlace filled = place_of_stages(place.scenario);
  const planner::SiteFigures figures =
      planner::figures_of(inventory, place.layout, {std::chrono::seconds{1}, {}, 0});
  if (inventory.priced() && figures.gpu_dollars_per_hour) {
    filled.dollars_per_hour = *figures.gpu_dollars_per_hour;
    filled.egress_dollars = figures.egress_dollars;
  }
  filled.parts = place.layout.replicas();
  return filled;
}

}  // namespace

Advised advised_of_sites(const Options& options, planner::AdviceOptions how,
                         const TrainingTerms& terms) {
  const std::string& file = options.files.front();
  const std::vector<std::string> given = given_overrides(options);
  const Scenario open = scenario::load_scenario(file, given, scenario::Placing::optional);
  const GpuInventory inventory{open};
  const AdviceGoal goal = goal_of(options);
  planner::SiteAdviceOptions sites;
  const auto facts_on = [&](const SiteLayout& layout, const Scenario& scenario) {
    PlanFacts facts = facts_of_stages(file, scenario, overrides_of(given, inventory, layout));
    facts.place_json = place_json(inventory, layout);
    facts.placed = place_text(inventory, layout);
    facts.parts = sites.has_one_batch ? 1 : layout.replicas();
    return facts;
  };
  std::optional<PrefillInput> prompts;
  if (goal == AdviceGoal::value) prompts = prompts_of(options, open);
  sites.goal = goal == AdviceGoal::value ? AdviceGoal::cost : goal;
  sites.dollars_per_gpu_hour = kAssumedGpuHour;
  const auto by_worth = prompts ? std::optional{search_by_worth(how)} : std::nullopt;
  sites.searches = std::move(how);
  sites.searches.keeps_all = prompts.has_value();
  sites.searches.methods = methods_of(options, open);
  sites.has_one_batch = sites.searches.methods.has_value();
  sites.placed = [&](const SiteLayout& layout) {
    return scenario::load_scenario(file, overrides_of(given, inventory, layout));
  };
  sites.longest_on = [&](const SiteLayout& layout) {
    const PlanFacts facts = facts_of_stages(file, sites.placed(layout), {});
    return longest_iteration(terms, facts.tokens_per_iteration, facts.gpus);
  };
  const planner::SiteAdvice found = planner::advise_sites(inventory, sites).or_throw();
  Advised advised;
  advised.advice = prompts ? filled_advice(found.advice,
                                           [&](const planner::AdvisedPlan& plan) {
                                             const auto& at_place = found.places[at(plan.scenario)];
                                             FilledPlace where = filled_place(inventory, at_place);
                                             where.longest = sites.longest_on(at_place.layout);
                                             return where;
                                           },
                                           {*prompts, std::numeric_limits<std::size_t>::max(),
                                            by_worth, sites.searches.stopped})
                           : found.advice;
  for (const planner::AdvisedPlan& plan : advised.advice.plans) {
    const planner::AdvisedPlace& place = found.places[at(plan.scenario)];
    PlanFacts facts = facts_on(place.layout, place.scenario);
    facts.memory = memory_of(plan, place.scenario);
    advised.facts.push_back(
        with_method(std::move(facts), plan, sites.searches.methods, place.scenario.train.costs));
  }
  advised.goal = goal;
  advised.methods = sites.searches.methods;
  advised.has_places = true;
  if (!prompts) advised.bound = found.bound;
  advised.bound_reason = kWhyNoneIsBelow;
  const Scenario& best = found.places[at(advised.advice.best().scenario)].scenario;
  advised.header = record_header(options, best);
  advised.head = fmt::format("{}: {}", best.name, report::counted(best.ranks(), "rank"));
  return advised;
}

}  // namespace longhaul::cli
