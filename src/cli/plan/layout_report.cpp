#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/plan/layout_plan.hpp"
#include "cli/predict/parameters_json.hpp"
#include "report/record.hpp"
#include "scenario/model_operators.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using planner::LayoutPlan;
using planner::LayoutProblem;

double peak_of(const LayoutProblem& problem) { return problem.machine->gpu.flops_per_ns * 1e9; }

double utilisation_of(const LayoutProblem& problem, const LayoutPlan& plan) {
  return planner::paper_utilisation(problem.model, plan.iteration, plan.layout.gpus(),
                                    peak_of(problem));
}

double own_mfu(const LayoutProblem& problem, const LayoutPlan& plan) {
  return planner::own_flops(problem.model) / (plan.gpu_time() / 1e9 * peak_of(problem));
}

ordered_json null_or(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json{};
}

bool overlap(const LayoutPlan& a, const LayoutPlan& b) {
  return a.low <= b.high && b.low <= a.high;
}

std::string dollars_text(double dollars) {
  return dollars >= 1e6 ? fmt::format("{:.2f} M", dollars / 1e6) : fmt::format("{:.0f}", dollars);
}

Table plan_table(bool with_run, bool with_sites) {
  std::vector<Table::Column> columns{{"t,d,p", Align::left},
                                     {"b"},
                                     {"v"},
                                     {"schedule", Align::left},
                                     {"recompute", Align::left},
                                     {"sharding", Align::left, 1},
                                     {"GPUs"},
                                     {"iteration"},
                                     {"from", Align::right, 2},
                                     {"to", Align::right, 2},
                                     {"leave nodes", Align::left, 3},
                                     {"util."},
                                     {"memory", Align::right, 1}};
  if (with_run) columns.insert(columns.end(), {{"days"}, {"$"}});
  if (with_sites) columns.push_back({"placed", Align::left});
  columns.push_back({"best by", Align::left});
  return Table{columns};
}

std::string counts_text(const std::map<std::string, std::int64_t>& counts) {
  std::string text;
  for (const auto& [reason, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, reason);
  return text.empty() ? "none" : text;
}

/// The best plan by an objective, of at least one.
std::size_t best_plan_of(const LayoutReport& report, LayoutObjective objective) {
  const std::vector<LayoutPlan>& plans = report.search.plans;
  std::size_t best = 0;
  for (std::size_t i = 1; i < plans.size(); ++i) {
    const auto key = [&](std::size_t plan) {
      const double time = static_cast<double>(plans[plan].iteration.count());
      const double cost = plans[plan].cost();
      return objective == LayoutObjective::time ? std::tuple{time, cost, plans[plan].layout}
                                                : std::tuple{cost, time, plans[plan].layout};
    };
    if (key(i) < key(best)) best = i;
  }
  return best;
}

/// By objective.
using BestPlans = std::map<LayoutObjective, std::size_t>;

BestPlans best_plans_of(const LayoutReport& report) {
  BestPlans best;
  if (report.search.plans.empty()) return best;
  for (const LayoutObjective objective : every<LayoutObjective>())
    if (is_on_front(report.problem, objective)) best[objective] = best_plan_of(report, objective);
  return best;
}

ApartRanks apart_in(const LayoutProblem& problem, const planner::Layout& layout) {
  const planner::SiteSplit split = problem.placings[at(layout.placing)].split;
  return {planner::sites_of_stages(problem, layout),
          problem.is_spread(layout) && split == planner::SiteSplit::replicas};
}

ordered_json plan_json(const LayoutReport& report, const LayoutPlan& plan) {
  const planner::Layout& layout = plan.layout;
  const LayoutProblem& problem = report.problem;
  const planner::TrainingCost cost = cost_of(report.run, plan.iteration, plan.priced_gpus);
  return {{"tensor", layout.tensor},
          {"data", layout.data},
          {"pipeline", layout.pipeline},
          {"micro_batch", layout.micro_batch},
          {"microbatches", problem.model.global_batch / (layout.data * layout.micro_batch)},
          {"chunks", layout.chunks},
          {"schedule", planner::to_string(layout.order)},
          {"recompute", to_string(layout.recompute)},
          {"sharding", profile::to_string(layout.sharding)},
          {"placement", placement_json(problem, layout)},
          {"gpus_used", layout.gpus()},
          {"iteration_ns", plan.iteration.count()},
          {"low_ns", plan.low.count()},
          {"high_ns", plan.high.count()},
          {"bound_ns", plan.bound.count()},
          {"utilisation", utilisation_of(problem, plan)},
          {"mfu", own_mfu(problem, plan)},
          {"days", null_or(cost.days)},
          {"dollars_per_hour", cost.dollars_per_hour},
          {"dollars", null_or(cost.dollars)},
          {"rings", rings_json(planner::row_of(problem, layout), *problem.machine,
                               apart_in(problem, layout))},
          {"memory_bytes", plan.memory.count()},
          {"fits", plan.memory <= problem.memory.value_or(problem.machine->memory)}};
}

}  // namespace

ordered_json placement_json(const LayoutProblem& problem, const planner::Layout& layout) {
  const planner::SiteChoice& choice = problem.placings[at(layout.placing)];
  const bool of_stages = choice.split == planner::SiteSplit::stages;
  const std::vector<int> parts = scenario::evenly(of_stages ? layout.pipeline : layout.data,
                                                  static_cast<int>(choice.sites.size()));
  ordered_json sites = ordered_json::object();
  for (std::size_t i = 0; i < parts.size(); ++i)
    sites[problem.sites[at(choice.sites[i])].name] = parts[i];
  return {{"split", planner::to_string(choice.split)}, {"datacenters", sites}};
}

std::string placement_text(const LayoutProblem& problem, const planner::Layout& layout) {
  const ordered_json json = placement_json(problem, layout);
  std::string text;
  for (const auto& [name, count] : json["datacenters"].items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count.get<int>());
  return fmt::format("{}: {}", json["split"].get<std::string>(), text);
}

bool is_on_front(const LayoutProblem& problem, LayoutObjective objective) {
  return objective != LayoutObjective::utilisation || problem.has_one_price();
}

ordered_json layout_json(const LayoutReport& report) {
  const planner::LayoutSearch& search = report.search;
  ordered_json json;
  json["space"] = {
      {"points", search.points}, {"feasible", search.feasible}, {"refused", search.refused}};
  json["evaluated"] = search.evaluated;
  json["pruned"] = search.pruned;
  json["blocks"] = search.blocks;
  json["gap"] = {{"time", null_or(search.gap_time)}, {"cost", null_or(search.gap_cost)}};
  json["best"] = ordered_json::object();
  json["plans"] = ordered_json::array();
  if (search.plans.empty()) return json;
  const BestPlans best_plans = best_plans_of(report);
  for (const auto& [objective, plan] : best_plans) json["best"][to_string(objective)] = plan;
  const LayoutPlan& best = search.plans[best_plans.at(report.objective)];
  const std::set<planner::Layout> front = planner::layouts_on_front(search.plans);
  for (const LayoutPlan& plan : search.plans) {
    json["plans"].push_back(plan_json(report, plan));
    json["plans"].back()["pareto"] = front.contains(plan.layout);
    json["plans"].back()["distinguishable_from_best"] = !overlap(plan, best);
  }
  return json;
}

std::string layout_text(const LayoutReport& report, TableWidth width) {
  const planner::LayoutSearch& search = report.search;
  const LayoutProblem& problem = report.problem;
  const bool with_run = report.run.iterations.has_value();
  const bool with_sites = problem.placings.size() > 1;
  std::string text = fmt::format("{} on {}: global batch {}, {} tokens a sequence; simulated\n\n",
                                 problem.model.model, problem.machine->name,
                                 problem.model.global_batch, problem.model.sequence);
  Table table = plan_table(with_run, with_sites);
  const BestPlans best_plans = best_plans_of(report);
  for (std::size_t i = 0; i < search.plans.size(); ++i) {
    const LayoutPlan& plan = search.plans[i];
    const planner::Layout& layout = plan.layout;
    std::string best;
    for (const auto& [objective, of_objective] : best_plans)
      if (of_objective == i)
        best += fmt::format("{}{}", best.empty() ? "" : ", ", to_string(objective));
    std::vector<std::string> row{
        fmt::format("{},{},{}", layout.tensor, layout.data, layout.pipeline),
        std::to_string(layout.micro_batch),
        std::to_string(layout.chunks),
        planner::to_string(layout.order),
        to_string(layout.recompute),
        profile::to_string(layout.sharding),
        std::to_string(layout.gpus()),
        longhaul::to_text(plan.iteration),
        longhaul::to_text(plan.low),
        longhaul::to_text(plan.high),
        rings_text(planner::row_of(problem, layout), *problem.machine, apart_in(problem, layout)),
        fmt::format("{:.2f}%", 100 * utilisation_of(problem, plan)),
        longhaul::to_text(plan.memory)};
    if (with_run) {
      const planner::TrainingCost cost = cost_of(report.run, plan.iteration, plan.priced_gpus);
      row.push_back(fmt::format("{:.2f}", *cost.days));
      row.push_back(dollars_text(*cost.dollars));
    }
    if (with_sites) row.push_back(placement_text(problem, layout));
    row.push_back(best);
    table.add_row(row);
  }
  text += table.text(width);
  text += fmt::format("\n{} points: refused: {}\n{} feasible, {} evaluated; pruned: {}\n",
                      search.points, counts_text(search.refused), search.feasible, search.evaluated,
                      counts_text(search.pruned));
  if (!search.gap_time || !search.gap_cost)
    text += "stopped before every point was looked at: how far the best is, is not known\n";
  else if (search.pruned.contains("stopped"))
    text += fmt::format("stopped: the best may be {:.1f}% faster and {:.1f}% cheaper\n",
                        100 * *search.gap_time, 100 * *search.gap_cost);
  return text;
}

}  // namespace longhaul::cli
