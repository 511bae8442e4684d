#include "planner/predict/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "planner/predict/robust_fit.hpp"

namespace longhaul::planner {
namespace {

using profile::Parameter;
using profile::ParameterValues;
using profile::TrainingRow;

constexpr double kCovered = 0.9;

PredictionErrors errors_of(const std::vector<double>& ratios) {
  PredictionErrors errors;
  if (ratios.empty()) return errors;
  std::vector<double> sizes;
  for (const double ratio : ratios) sizes.push_back(std::abs(1 / ratio - 1));
  std::ranges::sort(sizes);
  for (const double size : sizes) errors.mean += size / static_cast<double>(sizes.size());
  const std::size_t middle = sizes.size() / 2;
  errors.median = sizes.size() % 2 == 1 ? sizes[middle] : (sizes[middle - 1] + sizes[middle]) / 2;
  errors.largest = sizes.back();
  return errors;
}

/// Rows that differ in nothing of these are left out together.
using RowGroup = std::tuple<int, int, int, int>;
RowGroup group_of(const TrainingRow& row) {
  return {row.hidden, row.tensor, row.data, row.pipeline};
}

double nanoseconds(Duration time) { return static_cast<double>(time.count()); }

std::vector<double> ratios_of(const std::vector<FitRow*>& rows, const ParameterValues& values) {
  std::vector<double> ratios;
  for (FitRow* row : rows)
    ratios.push_back(nanoseconds(row->measured) / nanoseconds(row->plan.run(values).iteration));
  return ratios;
}

/// Ratios of each row, from a fit without its group.
std::vector<double> leave_out_groups(const std::vector<FitRow*>& rows, const RobustFit& from,
                                     const ParameterValues& defaults, int& groups) {
  std::map<RowGroup, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < rows.size(); ++i)
    members[group_of(rows[i]->plan.graph().row)].push_back(i);
  groups = static_cast<int>(members.size());
  std::vector<double> ratios(rows.size());
  for (const auto& [group, own] : members) {
    std::vector<FitRow*> others, left;
    for (FitRow* row : rows)
      (group_of(row->plan.graph().row) == group ? left : others).push_back(row);
    const RobustFit fit = fit_robustly(others, defaults, from.values, kFewSteps);
    const std::vector<double> of_left = ratios_of(left, fit.values);
    for (std::size_t i = 0; i < own.size(); ++i) ratios[own[i]] = of_left[i];
  }
  return ratios;
}

MachineFit fit_machine(const std::string& name, const std::vector<FitRow*>& rows,
                       std::vector<std::vector<double>>& ratios) {
  const ParameterValues& defaults = profile::machine_named(name).parameters;
  MachineFit machine;
  machine.machine = name;
  machine.rows = static_cast<int>(rows.size());
  const RobustFit fit = fit_robustly(rows, defaults, defaults, kManySteps);
  machine.calibration.values = fit.values;
  machine.calibration.fitted = fit.fitted;
  machine.left_out_ratios = leave_out_groups(rows, fit, defaults, machine.groups);
  const RatioInterval interval = shortest_interval(machine.left_out_ratios);
  machine.calibration.low = interval.low;
  machine.calibration.high = interval.high;
  const std::vector<double> before = ratios_of(rows, defaults), after = ratios_of(rows, fit.values);
  machine.unfitted = errors_of(before);
  machine.fitted = errors_of(after);
  machine.left_out = errors_of(machine.left_out_ratios);
  const std::vector<double>* const sources[] = {&before, &after, &machine.left_out_ratios};
  for (std::size_t i = 0; i < 3; ++i)
    ratios[i].insert(ratios[i].end(), sources[i]->begin(), sources[i]->end());
  return machine;
}

}  // namespace

RatioInterval shortest_interval(std::vector<double> ratios) {
  std::ranges::sort(ratios);
  const auto count = ratios.size();
  if (count == 0) return {};
  const auto wanted = static_cast<std::size_t>(std::llround(kCovered * static_cast<double>(count)));
  const std::size_t inside = std::max<std::size_t>(wanted, 1);
  RatioInterval best{ratios.front(), ratios.back()};
  for (std::size_t first = 0; first + inside <= count; ++first) {
    const double low = ratios[first], high = ratios[first + inside - 1];
    if (high - low < best.high - best.low) best = {low, high};
  }
  return {std::min(best.low, 1.0), std::max(best.high, 1.0)};
}

profile::Calibration Fit::calibration() const {
  profile::Calibration all;
  for (const MachineFit& machine : machines) all.emplace(machine.machine, machine.calibration);
  return all;
}

Fit fit_parameters(const std::vector<TrainingRow>& rows, const PredictOptions& options) {
  std::map<std::string, std::vector<FitRow>> by_machine;
  for (const TrainingRow& row : rows) {
    if (!row.measured)
      fail("row {} has no measured time (a fit needs iteration_ms). Fill it in, or leave it out.",
           row.row);
    const profile::Machine& machine = profile::machine_named(row.machine);
    by_machine[row.machine].push_back(
        {RowPlan{profile::row_graph(row, machine, options.extrapolation)}, *row.measured});
  }
  Fit fit;
  std::vector<std::vector<double>> ratios(3);
  for (auto& [name, own] : by_machine) {
    std::vector<FitRow*> pointers;
    for (FitRow& row : own) pointers.push_back(&row);
    fit.machines.push_back(fit_machine(name, pointers, ratios));
  }
  fit.unfitted = errors_of(ratios[0]);
  fit.fitted = errors_of(ratios[1]);
  fit.left_out = errors_of(ratios[2]);
  return fit;
}

}  // namespace longhaul::planner
