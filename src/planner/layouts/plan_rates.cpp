#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "planner/layouts/layout_figures.hpp"
#include "scenario/model_operators.hpp"

namespace longhaul::planner {

LayoutSpace rule_of_thumb(const LayoutProblem& problem, LayoutSpace space) {
  int tensor = space.tensor.front();
  for (const int count : space.tensor)
    if (count <= problem.machine->gpus_per_node) tensor = std::max(tensor, count);
  space.tensor = {tensor};
  LayoutSpace tried = space;
  tried.sharding = {profile::ShardingKind::none};
  for (const int count : space.pipeline) {
    tried.pipeline = {count};
    if (!any_layout_fits(problem, tried)) continue;
    space.pipeline = {count};
    break;
  }
  return space;
}

PlanRates plan_rates(const LayoutProblem& problem, LayoutSpace space, RatePlans how, int most) {
  space.has_gpus = [most](std::int64_t count) { return count <= most; };
  if (how == RatePlans::baseline) {
    space.tensor = {problem.machine->gpus_per_node};
    space = rule_of_thumb(problem, std::move(space));
  }
  LayoutSearchOptions options;
  options.second = LayoutGoal::gpus;
  std::vector<LayoutPlan> plans = search_layouts(problem, space, options).plans;
  std::ranges::reverse(plans);  // fewest GPUs, and slowest, first
  PlanRates found;
  const int node = problem.machine->gpus_per_node;
  std::size_t next = 0;
  for (int gpus = node; gpus <= most; gpus += node) {
    while (next < plans.size() && plans[next].layout.gpus() <= gpus) ++next;
    if (next == 0) continue;
    const LayoutPlan& plan = plans[next - 1];
    found.rates.push_back({gpus, 1e9 / static_cast<double>(plan.iteration.count())});
    found.plans.push_back(plan);
  }
  return found;
}

std::vector<SiteRate> site_rates(const LayoutProblem& problem, const LayoutSpace& space) {
  LayoutSearchOptions options;
  options.second = LayoutGoal::gpus;
  std::map<std::vector<int>, double> fastest;
  for (const SiteChoice& placing : problem.placings) {
    LayoutProblem own = problem;
    own.placings = {placing};
    for (const LayoutPlan& plan : search_layouts(own, space, options).plans) {
      double& rate = fastest[gpus_of_sites(own, plan.layout)];
      rate = std::max(rate, 1e9 / static_cast<double>(plan.iteration.count()));
    }
  }
  std::vector<SiteRate> found;
  for (const auto& [gpus, rate] : fastest) found.push_back({gpus, rate});
  return found;
}

}  // namespace longhaul::planner
