#include "cli/plan/site_report.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/plan/plan.hpp"
#include "report/record.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

constexpr planner::SiteObjective kReportedObjectives[] = {
    planner::SiteObjective::throughput, planner::SiteObjective::cost, planner::SiteObjective::time};

bool uses(const planner::SitePlan& plan, DatacenterId datacenter) {
  return std::ranges::find(plan.layout.placement, datacenter,
                           &planner::DatacenterStages::datacenter) != plan.layout.placement.end();
}

std::string number(double value) { return fmt::format("{:.4g}", value); }
std::string number(const std::optional<double>& value) { return value ? number(*value) : "-"; }

std::string gpus_text(const planner::GpuInventory& inventory, const planner::SitePlan& plan) {
  std::string text;
  for (const planner::DatacenterStages& share : plan.layout.placement)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", inventory.name(share.datacenter),
                        share.stages * plan.layout.replicas() * inventory.gpus_of_stage());
  return text;
}

/// "T" best throughput, "C" cost, "t" time, "*" Pareto.
std::string marks(const std::vector<planner::SitePlan>& plans, const planner::SitePlan& plan) {
  std::string text;
  constexpr std::string_view kLetters = "TCt";
  for (std::size_t i = 0; i < kLetters.size(); ++i) {
    if (planner::best_plan(plans, kReportedObjectives[i]) == &plan) text += kLetters[i];
  }
  return plan.pareto ? text + '*' : text;
}

Table plan_table(const planner::GpuInventory& inventory, const char* time_unit) {
  const bool tokens = inventory.scenario().model.has_value();
  return Table{{{"D"},
                {"schedule", Align::left, 11},
                {"GPUs", Align::left, 1},
                {"stages", Align::left},
                {fmt::format("PP [{}]", time_unit), Align::right, 6},
                {"all-reduce", Align::right, 5},
                {"iteration"},
                {"D*C/s"},
                {tokens ? "tokens/s" : "samples/s", Align::right, 8},
                {"busy [%]", Align::right, 7},
                {"$/h", Align::right, 9},
                {"$/iteration", Align::right, 4},
                {tokens ? "$/1M tokens" : "$/sample", Align::right, 10},
                {"WAN GB", Align::right, 3},
                {"WAN $", Align::right, 2},
                {"", Align::left}}};
}

std::vector<std::string> plan_row(const planner::GpuInventory& inventory,
                                  const planner::SitePlan& plan, const report::TimeScale& scale,
                                  const std::string& mark) {
  const std::string cells = std::to_string(plan.layout.cells);
  if (!plan.feasible()) return {cells, "-", "-", plan.infeasible};
  const planner::SiteFigures& figures = plan.figures;
  const auto time = [&](Duration of) { return scale.text(static_cast<double>(of.count())); };
  const bool tokens = figures.tokens_per_second.has_value();
  return {cells,
          plan.schedule,
          gpus_text(inventory, plan),
          planner::to_text(inventory, plan.layout.placement),
          time(plan.times.pipeline),
          time(plan.times.all_reduce),
          time(plan.times.iteration()),
          number(figures.iterations_per_second),
          number(tokens ? *figures.tokens_per_second : figures.samples_per_second),
          report::percent_text(figures.utilisation),
          number(figures.dollars_per_hour),
          number(figures.dollars),
          number(tokens ? figures.dollars_per_million_tokens : figures.dollars_per_sample),
          number(figures.egress_bytes / 1e9),
          figures.dollars ? number(figures.egress_dollars) : "-",
          mark};
}

std::string left_out_text(const planner::GpuInventory& inventory,
                          const std::vector<planner::SitePlan>& plans) {
  std::string text;
  for (const LeftOut& out : left_out(inventory, plans)) {
    const std::string& name = inventory.name(out.datacenter);
    if (out.with == nullptr) {
      text += fmt::format("{} stays out: no number of cells needs its {} GPUs\n", name,
                          inventory.gpus(out.datacenter));
      continue;
    }
    text += fmt::format(
        "leaving {} out is better: {:.4g} iterations/s without it, {:.4g} with it at best (D={}), "
        "{:.1f}% more\n",
        name, out.with->figures.iterations_per_second * (1 + out.gain),
        out.with->figures.iterations_per_second, out.with->layout.cells, 100 * out.gain);
  }
  return text;
}

}  // namespace

std::vector<LeftOut> left_out(const planner::GpuInventory& inventory,
                              const std::vector<planner::SitePlan>& plans) {
  std::vector<LeftOut> out;
  const planner::SitePlan* const best =
      planner::best_plan(plans, planner::SiteObjective::throughput);
  if (best == nullptr) return out;
  for (const DatacenterId id :
       planner::ordered_datacenters(inventory, planner::SiteOrder::availability)) {
    if (uses(*best, id)) continue;
    LeftOut left{id, nullptr, 0};
    for (const planner::SitePlan& plan : plans) {
      if (!plan.feasible() || !uses(plan, id)) continue;
      if (left.with == nullptr ||
          planner::score(plan, planner::SiteObjective::throughput) <
              planner::score(*left.with, planner::SiteObjective::throughput))
        left.with = &plan;
    }
    if (left.with != nullptr)
      left.gain =
          best->figures.iterations_per_second / left.with->figures.iterations_per_second - 1;
    out.push_back(left);
  }
  return out;
}

std::string plans_text(const planner::GpuInventory& inventory,
                       const std::vector<planner::SitePlan>& plans, TableWidth width) {
  double largest = 0;
  for (const planner::SitePlan& plan : plans)
    largest = std::max(largest, static_cast<double>(plan.times.iteration().count()));
  const report::TimeScale scale{largest};
  Table table = plan_table(inventory, scale.unit());
  for (const planner::SitePlan& plan : plans)
    table.add_row(plan_row(inventory, plan, scale, marks(plans, plan)));
  return table.text(width) +
         "T, C, t: best by throughput, cost, time; *: no other is as fast and as cheap a sample\n";
}

std::string plan_text(const planner::GpuInventory& inventory, const planner::SitePlan& plan) {
  std::string text = fmt::format(
      "{}, D={} cells of C={}: {} ({}), {} an iteration, {:.4g} iterations/s", plan.schedule,
      plan.layout.cells, plan.layout.pipelines, planner::to_text(inventory, plan.layout.placement),
      report::counted(plan.figures.gpus_used, "GPU"), to_text(plan.times.iteration()),
      plan.figures.iterations_per_second);
  if (plan.figures.dollars_per_hour)
    text += fmt::format(", ${:.4g} an hour", *plan.figures.dollars_per_hour);
  if (plan.figures.dollars_per_million_tokens)
    return text + fmt::format(", ${:.4g} per 1M tokens", *plan.figures.dollars_per_million_tokens);
  if (plan.figures.dollars_per_sample)
    text += fmt::format(", ${:.4g} a sample", *plan.figures.dollars_per_sample);
  return text;
}

std::string best_text(const planner::GpuInventory& inventory,
                      const std::vector<planner::SitePlan>& plans) {
  std::string text;
  for (const planner::SiteObjective objective : kReportedObjectives) {
    const planner::SitePlan* const best = planner::best_plan(plans, objective);
    if (best == nullptr) continue;
    const bool hours = objective == planner::SiteObjective::cost && !inventory.priced();
    text +=
        fmt::format("best by {}{}: {}\n", planner::to_string(objective),
                    hours ? " (GPU hours: a price is missing)" : "", plan_text(inventory, *best));
  }
  return text + left_out_text(inventory, plans);
}

std::string search_text(const planner::SiteSearch& search) {
  std::string text =
      fmt::format("{} candidates: {} evaluated ({} cells simulated), {} pruned\n",
                  search.candidates, search.evaluated, search.simulated, search.pruned_in_all());
  if (search.filling == planner::Filling::full)
    text += "each datacenter but the last takes all the stages that it holds\n";
  if (search.unexplored > 0)
    text += fmt::format("{} not looked at (--limit): the best may be up to {:.1f}% off\n",
                        search.unexplored, 100 * search.gap);
  Table table{{{"pruned by", Align::left}, {"candidates"}}};
  for (const planner::SitePrune prune : every<planner::SitePrune>())
    table.add_row({planner::to_string(prune), std::to_string(search.pruned[index(prune)])});
  table.add_row({"GPU supply (whole values of D)", std::to_string(search.unsupplied)});
  return text + table.text();
}

std::string break_even_text(const std::vector<planner::BreakEvenPoint>& points,
                            const std::string& a, const std::string& b) {
  Table table{{{"latency"},
               {"bandwidth from which both beat one", Align::left},
               {"one [D*C/s]"},
               {"both"},
               {"D"}}};
  for (const planner::BreakEvenPoint& point : points) {
    std::string verdict = "never, not even over an unlimited link";
    if (point.verdict == planner::BreakEven::always)
      verdict = "always, from the lowest that is tried";
    if (point.verdict == planner::BreakEven::no_plan)
      verdict = fmt::format("no plan uses both: {}", point.reason);
    if (point.bandwidth) verdict = to_text(*point.bandwidth);
    table.add_row({to_text(point.latency), verdict, number(point.one), number(point.two),
                   std::to_string(point.cells)});
  }
  return fmt::format("break-even of {} and {} against the better of them alone\n\n", a, b) +
         table.text();
}

}  // namespace longhaul::cli
