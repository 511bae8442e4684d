#include <charconv>
#include <cmath>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/program/working_line.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/plan/plan.hpp"
#include "cli/plan/site_report.hpp"
#include "report/record_file.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::cli {
namespace {

constexpr double kMostValues = 1000;
constexpr std::size_t kMostPoints = 10'000;

struct Quantity {
  double number = 0;
  std::string unit;
};

Quantity read_quantity(const std::string& sweep, std::string_view text) {
  Quantity quantity;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, quantity.number);
  if (problem != std::errc{} || !std::isfinite(quantity.number))
    fail("--sweep {}: \"{}\" is no number (a range is FROM:TO:STEP). Write {}.", sweep, text,
         "datacenter.b.gpus=0:600:60, say");
  quantity.unit = std::string{stopped, to_size(end - stopped)};
  return quantity;
}

std::vector<std::string> values_of(const std::string& sweep, const std::string& range) {
  const std::size_t first = range.find(':');
  const std::size_t second = first == std::string::npos ? first : range.find(':', first + 1);
  if (second == std::string::npos)
    fail("--sweep {}: \"{}\" is no range (it is FROM:TO:STEP). Write {}.", sweep, range,
         "datacenter.b.gpus=0:600:60, say");
  const Quantity from = read_quantity(sweep, range.substr(0, first));
  const Quantity to = read_quantity(sweep, range.substr(first + 1, second - first - 1));
  const Quantity step = read_quantity(sweep, range.substr(second + 1));
  if (from.unit != to.unit || from.unit != step.unit)
    fail("--sweep {}: units differ (\"{}\", \"{}\", \"{}\"). Give all three the same.", sweep,
         from.unit, to.unit, step.unit);
  if (!(step.number > 0) || to.number < from.number)
    fail("--sweep {}: nothing lies in {} (it goes up from FROM to TO by STEP). Turn it round.",
         sweep, range);
  const double count = std::floor((to.number - from.number) / step.number * (1 + 1e-12)) + 1;
  if (count > kMostValues)
    fail("--sweep {}: {} has {:.0f} values ({:.0f} is the limit). Take a larger step.", sweep,
         range, count, kMostValues);
  std::vector<std::string> values;
  for (int i = 0; i < static_cast<int>(count); ++i)
    values.push_back(fmt::format("{:.12g}{}", from.number + i * step.number, from.unit));
  return values;
}

/// NAME of "datacenter.NAME.gpus"; empty for other paths. Set here, since a site with no GPU at all
/// is a question, not a scenario.
std::string site_of_gpus(const std::string& path) {
  constexpr std::string_view kBefore = "datacenter.";
  constexpr std::string_view kAfter = ".gpus";
  if (!path.starts_with(kBefore) || !path.ends_with(kAfter)) return {};
  if (path.size() <= kBefore.size() + kAfter.size()) return {};
  return path.substr(kBefore.size(), path.size() - kBefore.size() - kAfter.size());
}

void set_gpus(Scenario& scenario, const std::string& path, const std::string& value) {
  const DatacenterId id = datacenter_of(scenario, site_of_gpus(path), "--sweep");
  int gpus = 0;
  const char* const end = value.data() + value.size();
  const auto [stopped, problem] = std::from_chars(value.data(), end, gpus);
  if (problem != std::errc{} || stopped != end || gpus < 0)
    fail("--sweep {}: {} is no number of GPUs (a whole number from 0 on). Correct the range.", path,
         value);
  scenario.datacenters[index(id)].gpus = gpus;
}

class Grid {
public:
  Grid(const Options& options, const PlanOptions& plan) : options_{options}, plan_{plan} {
    std::size_t points = 1;
    for (const std::string& text : options.plan.sweeps) {
      sweeps_.push_back(parse_sweep(text));
      gpus_alone_ = gpus_alone_ && !site_of_gpus(sweeps_.back().path).empty();
      points *= sweeps_.back().values.size();
      points_ = points;
      if (points > kMostPoints)
        fail("--sweep: the grid has more than {} points. Take larger steps, or fewer sweeps.",
             kMostPoints);
    }
    base_ = scenario_at({});
    if (gpus_alone_) {
      base_supply_ = std::make_unique<planner::GpuInventory>(base_);
      cells_ = std::make_unique<planner::CellTimes>(*base_supply_, plan.model, plan.threads);
    }
  }

  /// Calls visit(values, inventory, best) for each point.
  template <typename Visit>
  void each(Visit&& visit) {
    std::vector<std::size_t> at(sweeps_.size(), 0);
    std::size_t point = 0;
    for (bool more = true; more; more = advance(at)) {
      WorkingLine::step(fmt::format("point {} of {}", ++point, points_));
      std::vector<std::string> values;
      for (std::size_t i = 0; i < at.size(); ++i) values.push_back(sweeps_[i].values[at[i]]);
      const Scenario scenario = scenario_at(values);
      const planner::GpuInventory inventory{scenario};
      visit(values, inventory, best_at(inventory));
    }
  }
  [[nodiscard]] const std::vector<ParameterSweep>& sweeps() const { return sweeps_; }
  [[nodiscard]] const Scenario& base() const { return base_; }

private:
  bool advance(std::vector<std::size_t>& at) const {
    for (std::size_t i = at.size(); i-- > 0;) {
      if (++at[i] < sweeps_[i].values.size()) return true;
      at[i] = 0;
    }
    return false;
  }

  Scenario scenario_at(const std::vector<std::string>& values) const {
    std::vector<std::string> overrides = options_.overrides;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (site_of_gpus(sweeps_[i].path).empty())
        overrides.push_back(sweeps_[i].path + '=' + values[i]);
    }
    Scenario scenario = values.empty() || overrides.size() > options_.overrides.size()
                            ? scenario::load_scenario(options_.files.front(), overrides,
                                                      scenario::Placing::optional)
                            : base_;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!site_of_gpus(sweeps_[i].path).empty()) set_gpus(scenario, sweeps_[i].path, values[i]);
    }
    return scenario;
  }

  /// In a sweep of GPUs alone, cells are the same at every point: each kind is simulated once.
  planner::SitePlan best_at(const planner::GpuInventory& inventory) {
    try {
      if (cells_) return best_of(inventory, plan_, *cells_);
      planner::CellTimes cells{inventory, plan_.model, plan_.threads};
      return best_of(inventory, plan_, cells);
    } catch (const Error& error) {
      planner::SitePlan none;
      none.infeasible = error.what();
      return none;
    }
  }

  const Options& options_;
  const PlanOptions& plan_;
  std::vector<ParameterSweep> sweeps_;
  std::size_t points_ = 0;
  bool gpus_alone_ = true;
  Scenario base_;
  std::unique_ptr<planner::GpuInventory> base_supply_;
  std::unique_ptr<planner::CellTimes> cells_;
};

Answer as_json(const Options& options, const PlanOptions& plan, Grid& grid) {
  nlohmann::ordered_json json = plan_header(options, plan, grid.base());
  json["objective"] = planner::to_string(plan.objective);
  json["sweep"] = nlohmann::ordered_json::array();
  grid.each([&](const auto& values, const planner::GpuInventory& inventory,
                const planner::SitePlan& best) {
    nlohmann::ordered_json point;
    for (std::size_t i = 0; i < values.size(); ++i)
      point["values"][grid.sweeps()[i].path] = values[i];
    point["best"] = to_json(inventory, best);
    json["sweep"].push_back(std::move(point));
  });
  return {report::json_text(json)};
}

}  // namespace

ParameterSweep parse_sweep(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    fail("--sweep: \"{}\" names no value (it is PATH=FROM:TO:STEP). Write {}.", text,
         "datacenter.b.gpus=0:600:60, say");
  return {text.substr(0, equals), values_of(text.substr(0, equals), text.substr(equals + 1))};
}

Answer sweep_answer(const Options& options, const PlanOptions& plan) {
  Grid grid{options, plan};
  if (options.json) return as_json(options, plan, grid);
  std::vector<Table::Column> columns;
  for (const ParameterSweep& sweep : grid.sweeps()) columns.push_back({sweep.path});
  columns.insert(columns.end(), {{"D"},
                                 {"schedule", Align::left, 4},
                                 {"stages", Align::left},
                                 {"GPUs", Align::right, 2},
                                 {"iteration"},
                                 {"D*C/s"},
                                 {"to the first", Align::right, 1},
                                 {"$/h", Align::right, 3}});
  Table table{std::move(columns)};
  std::string reasons;
  double first = 0;
  grid.each([&](const auto& values, const planner::GpuInventory& inventory,
                const planner::SitePlan& best) {
    std::vector<std::string> row = values;
    if (!best.feasible()) {
      reasons += fmt::format("no plan at {}: {}\n", fmt::join(values, ", "), best.infeasible);
      row.insert(row.end(), {"-", "-", "no plan"});
      return table.add_row(std::move(row));
    }
    const planner::SiteFigures& figures = best.figures;
    if (first == 0) first = figures.iterations_per_second;
    row.insert(
        row.end(),
        {std::to_string(best.layout.cells), best.schedule,
         planner::to_text(inventory, best.layout.placement), std::to_string(figures.gpus_used),
         to_text(best.times.iteration()), fmt::format("{:.4g}", figures.iterations_per_second),
         fmt::format("{:.3f}", figures.iterations_per_second / first),
         figures.dollars_per_hour ? fmt::format("{:.4g}", *figures.dollars_per_hour) : "-"});
    table.add_row(std::move(row));
  });
  return {fmt::format("the best plan by {} at each value\n\n", planner::to_string(plan.objective)) +
          table.text(table_width(options)) + reasons};
}

}  // namespace longhaul::cli
