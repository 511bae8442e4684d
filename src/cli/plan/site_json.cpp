#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/plan/plan.hpp"
#include "cli/plan/site_report.hpp"
#include "planner/collectives/grain.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

ordered_json optional_json(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

void add_figures(const planner::SiteFigures& figures, ordered_json& json) {
  json["gpus_used"] = figures.gpus_used;
  json["iterations_per_second"] = figures.iterations_per_second;
  json["samples_per_second"] = figures.samples_per_second;
  json["tokens_per_second"] = optional_json(figures.tokens_per_second);
  json["utilisation"] = figures.utilisation;
  json["gpu_hours"] = figures.gpu_hours;
  json["egress_bytes"] = figures.egress_bytes;
  json["egress_dollars"] = figures.egress_dollars;
  json["gpu_dollars_per_hour"] = optional_json(figures.gpu_dollars_per_hour);
  json["dollars_per_hour"] = optional_json(figures.dollars_per_hour);
  json["dollars_per_iteration"] = optional_json(figures.dollars);
  json["dollars_per_sample"] = optional_json(figures.dollars_per_sample);
  json["dollars_per_million_tokens"] = optional_json(figures.dollars_per_million_tokens);
}

/// The all-reduce is a ring's time by its formula, added to the pipelines': it holds no link.
planner::Grain grain_of_all_reduce(const Scenario& scenario, const planner::SiteLayout& layout) {
  const GradientSync sync = scenario.parallel.gradient_sync;
  if (layout.replicas() < 2 || sync == GradientSync::none) return planner::Grain::steps;
  return planner::Grain::estimate;
}

}  // namespace

ordered_json to_json(const planner::GpuInventory& inventory, const planner::SitePlan& plan) {
  const planner::SiteLayout& layout = plan.layout;
  ordered_json json{{"schedule", plan.schedule},
                    {"cells", layout.cells},
                    {"pipelines_per_cell", layout.pipelines},
                    {"replicas", layout.replicas()},
                    {"feasible", plan.feasible()}};
  if (!plan.feasible()) {
    json["reason"] = plan.infeasible;
    return json;
  }
  json["way"] = ordered_json::array();
  for (const planner::DatacenterStages& share : layout.placement)
    json["way"].push_back({{"datacenter", inventory.name(share.datacenter)},
                           {"stages", share.stages},
                           {"gpus", share.stages * layout.replicas() * inventory.gpus_of_stage()}});
  json["pipeline_ns"] = plan.times.pipeline.count();
  json["all_reduce_ns"] = plan.times.all_reduce.count();
  json["grain"] = to_string(grain_of_all_reduce(inventory.scenario(), layout));
  json["iteration_ns"] = plan.times.iteration().count();
  add_figures(plan.figures, json);
  json["pareto"] = plan.pareto;
  return json;
}

ordered_json best_json(const planner::GpuInventory& inventory,
                       const std::vector<planner::SitePlan>& plans) {
  ordered_json json;
  for (const planner::SiteObjective objective : every<planner::SiteObjective>()) {
    const planner::SitePlan* const best = planner::best_plan(plans, objective);
    json["best"][planner::to_string(objective)] =
        best == nullptr ? ordered_json(nullptr) : ordered_json(best - plans.data());
  }
  json["left_out"] = ordered_json::array();
  for (const LeftOut& out : left_out(inventory, plans)) {
    ordered_json each{{"datacenter", inventory.name(out.datacenter)}};
    each["best_with"] =
        out.with == nullptr ? ordered_json(nullptr) : ordered_json(out.with - plans.data());
    each["gain"] = out.with == nullptr ? ordered_json(nullptr) : ordered_json(out.gain);
    json["left_out"].push_back(std::move(each));
  }
  return json;
}

ordered_json to_json(const planner::SiteSearch& search) {
  ordered_json json{{"candidates", search.candidates},
                    {"evaluated", search.evaluated},
                    {"simulated_cells", search.simulated},
                    {"unsupplied", search.unsupplied},
                    {"unexplored", search.unexplored},
                    {"gap", search.gap},
                    {"filling", planner::to_string(search.filling)}};
  for (const planner::SitePrune prune : every<planner::SitePrune>())
    json["pruned"][planner::to_string(prune)] = search.pruned[index(prune)];
  return json;
}

ordered_json to_json(const planner::BreakEvenPoint& point) {
  ordered_json json{{"latency_ns", point.latency.count()},
                    {"verdict", planner::to_string(point.verdict)}};
  json["bandwidth_bits_per_second"] =
      point.bandwidth ? ordered_json(point.bandwidth->bits_per_second()) : ordered_json(nullptr);
  json["one_iterations_per_second"] = point.one;
  json["two_iterations_per_second"] = point.two;
  json["cells"] = point.cells;
  return json;
}

}  // namespace longhaul::cli
