#include "planner/sites/algorithm1.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "planner/sites/cell_scenario.hpp"

namespace longhaul::planner {
namespace {

void require_one_cell(const GpuInventory& inventory, int pipelines) {
  if (inventory.most_cells(pipelines) >= 1) return;
  std::int64_t all = 0;
  for (int i = 0; i < inventory.datacenters(); ++i) all += inventory.gpus(DatacenterId{i});
  const int of_stage = inventory.gpus_of_stage();
  fail(
      "all datacenters together have {} GPUs, and one DP-cell needs {} ({} pipelines of {} stages"
      "{}). Add GPUs, or lower parallel.stages or parallel.cell.",
      all, static_cast<std::int64_t>(pipelines) * inventory.stages() * of_stage, pipelines,
      inventory.stages(), of_stage > 1 ? fmt::format(" of {} GPUs", of_stage) : std::string{});
}

std::string why_not_held(const GpuInventory& inventory, std::span<const DatacenterId> order,
                         int replicas) {
  std::int64_t held = 0;
  for (const DatacenterId id : order) held += inventory.stages_for(id, replicas);
  return fmt::format("the datacenters hold {} of {} stages {} times", held, inventory.stages(),
                     replicas);
}

}  // namespace

SitePlan make_plan(const GpuInventory& inventory, const CellQuery& query, const CellTime& time) {
  SitePlan plan;
  plan.schedule = query.schedule.name;
  plan.layout = query.layout;
  plan.infeasible = time.failure;
  if (!plan.feasible()) return plan;
  plan.times = {time.time, all_reduce_time(inventory, query.layout), time.busy};
  plan.figures = figures_of(inventory, plan.layout, plan.times);
  return plan;
}

SitePlans algorithm1(const GpuInventory& inventory, const Algorithm1Options& options,
                     CellTimes& cells) {
  return try_algorithm1(inventory, options, cells).or_throw();
}

Result<SitePlans> try_algorithm1(const GpuInventory& inventory, const Algorithm1Options& options,
                                 CellTimes& cells) {
  SitePlans result;
  result.order = ordered_datacenters(inventory, options.order);
  result.pipelines = options.pipelines.value_or(cell_size(inventory, result.order));
  require_one_cell(inventory, result.pipelines);
  result.most_cells = inventory.most_cells(result.pipelines);
  const int last = std::min(result.most_cells, options.most_cells.value_or(result.most_cells));
  std::vector<CellQuery> queries;
  std::vector<std::size_t> of_query;
  for (int count = 1; count <= last; ++count) {
    SitePlan plan;
    plan.schedule = options.schedule.name;
    plan.layout = {{}, count, result.pipelines};
    if (auto placement = greedy_placement(inventory, result.order, plan.layout.replicas())) {
      plan.layout.placement = *std::move(placement);
      of_query.push_back(result.plans.size());
      queries.push_back({options.schedule, plan.layout});
    } else {
      plan.infeasible = why_not_held(inventory, result.order, plan.layout.replicas());
    }
    result.plans.push_back(std::move(plan));
  }
  const Result<std::vector<CellTime>> times = cells.try_times(queries);
  if (!times) return times.refusal();
  for (std::size_t i = 0; i < queries.size(); ++i)
    result.plans[of_query[i]] = make_plan(inventory, queries[i], (*times)[i]);
  mark_pareto(result.plans);
  return result;
}

double score(const SitePlan& plan, SiteObjective objective) {
  switch (objective) {
    case SiteObjective::throughput:
      return static_cast<double>(plan.times.iteration().count()) / plan.layout.replicas();
    case SiteObjective::cost: return plan.figures.cost;
    case SiteObjective::time: return static_cast<double>(plan.times.iteration().count());
  }
  return 0;
}

const SitePlan* best_plan(const std::vector<SitePlan>& plans, SiteObjective objective) {
  const SitePlan* best = nullptr;
  for (const SitePlan& plan : plans) {
    if (!plan.feasible()) continue;
    if (best == nullptr || score(plan, objective) < score(*best, objective)) best = &plan;
  }
  return best;
}

void mark_pareto(std::vector<SitePlan>& plans) {
  const auto dominates = [](const SitePlan& a, const SitePlan& b) {
    const double fast_a = score(a, SiteObjective::throughput);
    const double fast_b = score(b, SiteObjective::throughput);
    const double cost_a = a.figures.cost;
    const double cost_b = b.figures.cost;
    return fast_a <= fast_b && cost_a <= cost_b && (fast_a < fast_b || cost_a < cost_b);
  };
  for (SitePlan& plan : plans) {
    plan.pareto = plan.feasible() && std::ranges::none_of(plans, [&](const SitePlan& other) {
                    return other.feasible() && dominates(other, plan);
                  });
  }
}

}  // namespace longhaul::planner
