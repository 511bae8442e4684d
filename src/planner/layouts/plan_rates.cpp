#include <algorithm>

#include "base/index.hpp"
#include "planner/layouts/layout_figures.hpp"

namespace longhaul::planner {
namespace {

/// t = a node's GPUs, and the least p that fits without sharding.
LayoutSpace narrowed(const LayoutProblem& problem, LayoutSpace space) {
  space.tensor = {problem.machine->gpus_per_node};
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

}  // namespace

PlanRates plan_rates(const LayoutProblem& problem, LayoutSpace space, RatePlans how, int most) {
  space.has_gpus = [most](std::int64_t count) { return count <= most; };
  if (how == RatePlans::baseline) space = narrowed(problem, std::move(space));
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

}  // namespace longhaul::planner
