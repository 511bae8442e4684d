#include <algorithm>
#include <cmath>
#include <filesystem>
#include <ostream>
#include <set>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/program/option_values.hpp"
#include "base/text_file.hpp"
#include "cli/command/stop_signal.hpp"
#include "cli/plan/layout_plan.hpp"
#include "planner/layouts/layout_search.hpp"
#include "report/record_file.hpp"
#include "scenario/reader/load.hpp"
#include "scenario/text/search_section.hpp"
#include "schedule/csv/csv.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using planner::LayoutProblem;
using planner::LayoutSearch;

constexpr double kUsualPrice = 5;  // $ for a GPU and hour: an AWS P4d instance's in vTrain
constexpr double kNsOfDay = 86400e9;

/// Options of the planner of sites, which a search of layouts does not have.
void refuse_site_options(const PlanArguments& typed) {
  const std::pair<const char*, bool> given[] = {
      {"--order", !typed.order.empty()},         {"--max-cells", !typed.most_cells.empty()},
      {"--cell", !typed.pipelines.empty()},      {"--limit", !typed.limit.empty()},
      {"--threads", !typed.threads.empty()},     {"--latencies", !typed.latencies.empty()},
      {"--tolerance", !typed.tolerance.empty()}, {"--pooled", typed.pooled},
      {"--sweep", !typed.sweeps.empty()},        {"--break-even", !typed.break_even.empty()}};
  for (const auto& [option, is_given] : given)
    if (is_given)
      fail("{}: it has no effect with --search parallel (it is of plans of sites). Leave it out.",
           option);
}

ordered_json price_json(const LayoutReport& report) {
  const double greatest = report.run.dollars_per_gpu_hour;
  if (report.problem.has_one_price()) return greatest;
  ordered_json prices = ordered_json::object();
  for (const planner::LayoutSite& site : report.problem.sites)
    prices[site.name] = site.price * greatest;
  return prices;
}

planner::TrainingRun training_run(const LayoutArguments& typed, const Scenario& scenario,
                                  LayoutProblem& problem) {
  if (!typed.tokens.empty() && !typed.iterations.empty())
    fail("--tokens and --iterations are both given (the one follows from the other). Keep one.");
  planner::TrainingRun run;
  run.dollars_per_gpu_hour = set_prices(scenario, typed.price, problem);
  if (!typed.tokens.empty())
    run.iterations =
        planner::iterations_of(positive_number("--tokens", typed.tokens), problem.model);
  if (!typed.iterations.empty()) run.iterations = positive_number("--iterations", typed.iterations);
  return run;
}

planner::LayoutSearchOptions search_options(const LayoutArguments& typed,
                                            const planner::TrainingRun& run) {
  planner::LayoutSearchOptions options;
  options.exhaustive = typed.exhaustive;
  if (!typed.keep.empty() && typed.keep != "front" && typed.keep != "all")
    fail("--keep: there is no \"{}\". Write front or all.", typed.keep);
  options.keeps_all = typed.keep == "all";
  if (!typed.deadline.empty()) {
    if (!run.iterations)
      fail("--deadline: how much is trained is not known. Give --tokens or --iterations, too.");
    const double days = days_of("--deadline", typed.deadline);
    constexpr double kLongestNs = 0x1p62;  // 146 years: no iteration takes as long
    options.longest =
        Duration{std::llround(std::min(kLongestNs, days * kNsOfDay / *run.iterations))};
  }
  options.is_stopped = &StopSignal::came;
  return options;
}

void require_plans(const LayoutSearch& search) {
  if (!search.plans.empty()) return;
  if (StopSignal::came())
    fail(
        "the search was stopped before it had a plan ({} points, {} evaluated). Give it longer, or "
        "a smaller space.",
        search.points, search.evaluated);
  std::string reasons;
  for (const auto* counts : {&search.refused, &search.pruned})
    for (const auto& [reason, count] : *counts)
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : ", ", reason, count);
  if (search.evaluated > 0)
    fail(
        "no plan is left of {} points ({} were evaluated, all beyond the deadline). Give more "
        "time or GPUs.",
        search.points, search.evaluated);
  fail("no plan is left of {} points ({}). Widen what refuses most.", search.points, reasons);
}

void emit_plans(const std::string& directory, const LayoutProblem& problem,
                const LayoutSearch& search) {
  std::error_code problem_of_disk;
  if (!std::filesystem::create_directory(directory, problem_of_disk))
    fail("--emit: {} cannot be made ({}). Name a directory that does not exist.", directory,
         problem_of_disk ? problem_of_disk.message() : "it exists");
  for (std::size_t i = 0; i < search.plans.size(); ++i) {
    const std::string name = fmt::format("plan-{}", i);
    report::write_new_file(
        std::filesystem::path{directory} / (name + ".toml"),
        [&](std::ostream& out) { out << planner::scenario_text(problem, search.plans[i], name); });
    if (search.plans[i].layout.order != planner::LayoutOrder::best) continue;
    report::write_new_file(
        std::filesystem::path{directory} / (name + ".csv"),
        [&](std::ostream& out) { out << schedule::write_csv(*search.plans[i].schedule); });
  }
}

std::string json_of(const Options& options, const LayoutReport& report, double seconds) {
  ordered_json json = report::record_header(
      {.numbers = "simulated", .creator = "longhaul", .command_line = options.command_line});
  json["search_kind"] = "parallel";
  json["objective"] = to_string(report.objective);
  json["model"] = report.problem.model.model;
  json["machine"] = report.problem.machine->name;
  json["global_batch"] = report.problem.model.global_batch;
  json["iterations"] =
      report.run.iterations ? ordered_json(*report.run.iterations) : ordered_json{};
  json["dollars_per_gpu_hour"] = price_json(report);
  json.update(layout_json(report));
  json["seconds"] = seconds;
  return report::json_text(json);
}

}  // namespace

double set_prices(const Scenario& scenario, const std::string& typed, LayoutProblem& problem) {
  if (!typed.empty()) return positive_number("--price", typed);
  std::set<double> prices;
  const Datacenter* without = nullptr;
  for (const Datacenter& datacenter : scenario.datacenters) {
    if (datacenter.price) prices.insert(*datacenter.price);
    if (!datacenter.price) without = &datacenter;
  }
  if (prices.empty()) return kUsualPrice;
  const double greatest = *prices.rbegin();
  if (prices.size() == 1) return greatest;
  if (without != nullptr)
    fail("{}: {} has no price, and the others' differ. Give it a price, or --price for all.",
         scenario.name, without->name);
  for (std::size_t site = 0; site < problem.sites.size(); ++site)
    problem.sites[site].price = *scenario.datacenters[site].price / greatest;
  return greatest;
}

SearchedScenario searched_scenario(const std::string& file, std::vector<std::string> overrides) {
  const scenario::SearchedText text =
      scenario::read_searched_text(scenario::scenario_tree(read_text_file(file), file, overrides));
  if (!text.has_stages) overrides.emplace_back("parallel.stages=1");
  if (!text.has_batch) overrides.emplace_back("parallel.microbatches=1");
  return {scenario::load_scenario(file, overrides, scenario::Placing::optional), text.options};
}

Answer layout_answer(const Options& options) {
  refuse_site_options(options.plan);
  const TimePoint begin = now();
  const LayoutArguments& typed = options.layout;
  const SearchedScenario searched = searched_scenario(options.files.front(), options.overrides);
  const Scenario& scenario = searched.scenario;
  const LayoutTexts texts{typed, options.schedule, searched.texts};
  const std::string machine = texts.get(
      "machine", std::string{scenario.model ? planner::usual_machine(*scenario.model) : "selene"});
  LayoutProblem problem =
      planner::layout_problem(scenario, profile::machine_named(machine),
                              layout_calibration(texts.get("calibration", "none")));
  set_limits(texts, typed, problem);
  const planner::LayoutSpace space = layout_space(texts, problem);
  require_few_points(problem, space);
  const planner::TrainingRun run = training_run(typed, scenario, problem);
  const auto objective = options.plan.objective.empty()
                             ? LayoutObjective::time
                             : choice<LayoutObjective>("--objective", options.plan.objective);
  if (!is_on_front(problem, objective))
    fail(
        "--objective {}: datacenters have different prices, so that plans are kept by time and "
        "cost. Give --price for one price, or --objective cost.",
        to_string(objective));
  const StopSignal stop;
  LayoutSearch search = planner::search_layouts(problem, space, search_options(typed, run));
  require_plans(search);
  add_intervals(problem, search.plans);
  if (!typed.emit.empty()) emit_plans(typed.emit, problem, search);
  const LayoutReport report{problem, search, run, objective};
  const double seconds = std::chrono::duration<double>(now() - begin).count();
  if (options.json) return {json_of(options, report, seconds)};
  return {layout_text(report, table_width(options))};
}

}  // namespace longhaul::cli
