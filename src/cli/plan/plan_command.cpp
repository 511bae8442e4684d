#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/command/commands.hpp"
#include "cli/plan/layout_plan.hpp"
#include "cli/plan/plan.hpp"
#include "cli/plan/site_report.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

std::string heading(const planner::GpuInventory& inventory, const std::string& what) {
  const Parallel& parallel = inventory.scenario().parallel;
  std::string gpus;
  for (const DatacenterId id :
       planner::ordered_datacenters(inventory, planner::SiteOrder::availability))
    gpus +=
        fmt::format("{}{} {}", gpus.empty() ? "" : ", ", inventory.name(id), inventory.gpus(id));
  return fmt::format("{}: {}; {}, {}; GPUs: {}\n\n", inventory.scenario().name, what,
                     report::counted(parallel.stages, "stage"),
                     report::counted(parallel.microbatches, "microbatch"), gpus);
}

void require_best(const planner::SiteSearch& search) {
  if (search.best) return;
  fail("no plan can be made: {}", search.why_none);
}

Answer algorithm1_answer(const Options& options, const PlanOptions& plan,
                         const planner::GpuInventory& inventory) {
  planner::CellTimes cells{inventory, plan.model, plan.threads};
  const planner::SitePlans plans =
      planner::plan_sites(inventory, algorithm1_options_of(plan), cells);
  const std::string schedules =
      plan.schedules.size() == 1 ? plan.schedules.front().name
                                 : fmt::format("the best of {} schedules", plan.schedules.size());
  if (!options.json)
    return {
        heading(inventory, fmt::format("algorithm 1 with {}, C={}", schedules, plans.pipelines)) +
        plans_text(inventory, plans.plans, table_width(options)) + '\n' +
        best_text(inventory, plans.plans)};
  ordered_json json = plan_header(options, plan, inventory.scenario());
  json["order"] = ordered_json::array();
  for (const DatacenterId id : plans.order) json["order"].push_back(inventory.name(id));
  json["pipelines_per_cell"] = plans.pipelines;
  json["max_cells"] = plans.most_cells;
  json["plans"] = ordered_json::array();
  for (const planner::SitePlan& each : plans.plans)
    json["plans"].push_back(to_json(inventory, each));
  json.update(best_json(inventory, plans.plans));
  return {report::json_text(json)};
}

Answer search_answer(const Options& options, const PlanOptions& plan,
                     const planner::GpuInventory& inventory) {
  planner::CellTimes cells{inventory, plan.model, plan.threads};
  const planner::SiteSearch search =
      planner::search_sites(inventory, search_options_of(plan), cells);
  require_best(search);
  if (!options.json)
    return {heading(inventory, fmt::format("the best by {}", planner::to_string(plan.objective))) +
            plan_text(inventory, *search.best) + "\n\n" + search_text(search)};
  ordered_json json = plan_header(options, plan, inventory.scenario());
  json["objective"] = planner::to_string(plan.objective);
  json["plan"] = to_json(inventory, *search.best);
  json["search"] = to_json(search);
  return {report::json_text(json)};
}

Answer break_even_answer(const Options& options, const PlanOptions& plan,
                         const Scenario& scenario) {
  const std::vector<std::string> ends = words_of("--break-even", options.plan.break_even);
  if (ends.size() != 2 || ends[0] == ends[1])
    fail("--break-even: \"{}\" does not name two datacenters. Write --break-even A,B.",
         options.plan.break_even);
  planner::BreakEvenOptions wanted;
  wanted.plan = algorithm1_options_of(plan);
  wanted.tolerance = plan.tolerance;
  wanted.model = plan.model;
  wanted.threads = plan.threads;
  const std::vector<planner::BreakEvenPoint> points =
      planner::break_even(scenario, datacenter_of(scenario, ends[0], "--break-even"),
                          datacenter_of(scenario, ends[1], "--break-even"), plan.latencies, wanted);
  if (!options.json) return {break_even_text(points, ends[0], ends[1])};
  ordered_json json = plan_header(options, plan, scenario);
  json["between"] = ends;
  json["tolerance"] = plan.tolerance;
  json["break_even"] = ordered_json::array();
  for (const planner::BreakEvenPoint& point : points) json["break_even"].push_back(to_json(point));
  return {report::json_text(json)};
}

}  // namespace

planner::Algorithm1Options algorithm1_options_of(const PlanOptions& options) {
  planner::Algorithm1Options wanted;
  wanted.order = options.order;
  wanted.schedule = options.schedules.front();
  wanted.others.assign(options.schedules.begin() + 1, options.schedules.end());
  if (!options.pipelines.empty()) wanted.pipelines = options.pipelines.front();
  wanted.most_cells = options.most_cells;
  return wanted;
}

planner::SiteSearchOptions search_options_of(const PlanOptions& options) {
  return {options.schedules, options.pipelines, options.most_cells, options.objective, true,
          options.limit};
}

planner::SitePlan best_of(const planner::GpuInventory& inventory, const PlanOptions& options,
                          planner::CellTimes& cells) {
  if (options.exact) {
    planner::SiteSearch search =
        planner::search_sites(inventory, search_options_of(options), cells);
    require_best(search);
    return *std::move(search.best);
  }
  const planner::SitePlans plans =
      planner::plan_sites(inventory, algorithm1_options_of(options), cells);
  return *planner::best_plan(plans.plans, options.objective);
}

ordered_json plan_header(const Options& options, const PlanOptions& plan,
                         const Scenario& scenario) {
  ordered_json json = record_header(options, scenario);
  json.erase("replicas");
  json.erase("comm");
  json["schedules"] = ordered_json::array();
  for (const planner::ScheduleRequest& schedule : plan.schedules)
    json["schedules"].push_back(schedule.name);
  json["search_kind"] = plan.exact ? "exact" : "algorithm1";
  json["datacenter_order"] = planner::to_string(plan.order);
  json["cell_model"] = planner::to_string(plan.model);
  return json;
}

Answer plan_command(const Options& options) {
  if (options.plan.search == "parallel") return layout_answer(options);
  require_no_layout_options(options.layout);
  const PlanOptions plan = plan_options_of(options.plan, options.schedule);
  if (!options.plan.sweeps.empty() && !options.plan.break_even.empty())
    fail("--sweep and --break-even are both given (one answer at a time). Leave one out.");
  if (!options.plan.sweeps.empty()) return sweep_answer(options, plan);
  const Scenario scenario = scenario::load_scenario(options.files.front(), options.overrides,
                                                    scenario::Placing::optional);
  if (!options.plan.break_even.empty()) return break_even_answer(options, plan, scenario);
  const planner::GpuInventory inventory{scenario};
  return plan.exact ? search_answer(options, plan, inventory)
                    : algorithm1_answer(options, plan, inventory);
}

}  // namespace longhaul::cli
