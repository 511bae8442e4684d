#include "planner/sites/algorithm1.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "planner/sites/cell_scenario.hpp"

namespace longhaul::planner {
namespace {

std::string why_not_held(const GpuInventory& inventory, std::span<const DatacenterId> order,
                         int replicas) {
  std::int64_t held = 0;
  for (const DatacenterId id : order) held += inventory.stages_for(id, replicas);
  return fmt::format("the datacenters hold {} of {} stages {} times", held, inventory.stages(),
                     replicas);
}

/// The faster of two plans on one layout.
bool is_better(const SitePlan& plan, const SitePlan& than) {
  if (!plan.feasible()) return false;
  return !than.feasible() || plan.times.iteration() < than.times.iteration();
}

std::vector<ScheduleRequest> schedules_of(const Algorithm1Options& options) {
  std::vector<ScheduleRequest> schedules{options.schedule};
  schedules.insert(schedules.end(), options.others.begin(), options.others.end());
  return schedules;
}

/// The layouts of D = 1, 2, ... without times, or why there is none.
SitePlans layouts(int pipelines, const GpuInventory& inventory,
                  const std::vector<DatacenterId>& order, const Algorithm1Options& options) {
  SitePlans result;
  result.order = order;
  result.pipelines = pipelines;
  result.most_cells = inventory.most_cells(pipelines);
  const int last = std::min(result.most_cells, options.most_cells.value_or(result.most_cells));
  for (int count = 1; count <= last; ++count) {
    SitePlan plan;
    plan.schedule = options.schedule.name;
    plan.layout = {{}, count, pipelines};
    auto placement = greedy_placement(inventory, order, plan.layout.replicas());
    if (!placement) {
      plan.infeasible = why_not_held(inventory, order, plan.layout.replicas());
    } else if (const auto why = why_unlinked(inventory, *placement)) {
      plan.infeasible = why->reason;
    } else {
      plan.layout.placement = *std::move(placement);
    }
    result.plans.push_back(std::move(plan));
  }
  return result;
}

/// The plans of one C. Refused where no cell fits, or links are what every D lacks.
Result<SitePlans> with_cells_of(int pipelines, const GpuInventory& inventory,
                                const std::vector<DatacenterId>& order,
                                const Algorithm1Options& options, CellTimes& cells) {
  if (auto why = why_no_cell(inventory, pipelines)) return *std::move(why);
  SitePlans result = layouts(pipelines, inventory, order, options);
  // Every D under the first schedule comes first: where the search is ended, each has a plan.
  std::vector<CellQuery> queries;
  std::vector<std::size_t> of_query;
  for (const ScheduleRequest& schedule : schedules_of(options))
    for (std::size_t i = 0; i < result.plans.size(); ++i) {
      if (!result.plans[i].feasible()) continue;
      of_query.push_back(i);
      queries.push_back({schedule, result.plans[i].layout});
    }
  if (queries.empty()) return Refusal{result.plans.front().infeasible};
  const Result<std::vector<CellTime>> times = cells.try_times(queries);
  if (!times) return times.refusal();
  const std::size_t of_first = queries.size() / (1 + options.others.size());
  for (std::size_t i = 0; i < queries.size(); ++i) {
    SitePlan plan = make_plan(inventory, queries[i], (*times)[i]);
    SitePlan& best = result.plans[of_query[i]];
    if (i < of_first || is_better(plan, best)) best = std::move(plan);
  }
  mark_pareto(result.plans);
  return result;
}

}  // namespace

std::optional<Refusal> why_no_cell(const GpuInventory& inventory, int pipelines) {
  if (inventory.most_cells(pipelines) >= 1) return std::nullopt;
  std::int64_t all = 0;
  std::string names;
  for (const DatacenterId id : ordered_datacenters(inventory, SiteOrder::availability)) {
    all += inventory.gpus(id);
    names += (names.empty() ? "" : ", ") + inventory.name(id);
  }
  const int of_stage = inventory.gpus_of_stage();
  return refused(
      "all datacenters together have {} GPUs{}, and one DP-cell needs {} ({} pipelines of {} stages"
      "{}). Add GPUs, or lower parallel.stages or parallel.cell.",
      all, names.empty() ? "" : fmt::format(" ({})", names),
      static_cast<std::int64_t>(pipelines) * inventory.stages() * of_stage, pipelines,
      inventory.stages(), of_stage > 1 ? fmt::format(" of {} GPUs", of_stage) : std::string{});
}

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
  const std::vector<DatacenterId> order = ordered_datacenters(inventory, options.order);
  const std::vector<int> sizes =
      options.pipelines ? std::vector{*options.pipelines} : cell_sizes(inventory, order);
  Result<SitePlans> tried = refused("no size of a DP-cell was tried");
  for (const int pipelines : sizes) {
    tried = with_cells_of(pipelines, inventory, order, options, cells);
    if (tried && std::ranges::any_of(tried->plans, &SitePlan::feasible)) break;
  }
  return tried;
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
