#include <ostream>
#include <set>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/table.hpp"
#include "base/text_file.hpp"
#include "cli/command/commands.hpp"
#include "cli/predict/parameters_json.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using planner::MachineFit;
using planner::PredictionErrors;
using profile::Parameter;

ordered_json errors_json(const PredictionErrors& errors) {
  return {{"mape", errors.mean}, {"median", errors.median}, {"largest", errors.largest}};
}

ordered_json machine_json(const MachineFit& machine) {
  return {{"machine", machine.machine},
          {"rows", machine.rows},
          {"groups", machine.groups},
          {"unfitted", errors_json(machine.unfitted)},
          {"fitted", errors_json(machine.fitted)},
          {"left_out", errors_json(machine.left_out)},
          {"low", machine.calibration.low},
          {"high", machine.calibration.high}};
}

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string fit_text(const planner::Fit& fit, TableWidth width) {
  Table table{{{"machine", Align::left},
               {"rows"},
               {"groups"},
               {"unfitted"},
               {"fitted"},
               {"left out"},
               {"median"},
               {"from"},
               {"to"}}};
  for (const MachineFit& machine : fit.machines)
    table.add_row({machine.machine, std::to_string(machine.rows), std::to_string(machine.groups),
                   percent(machine.unfitted.mean), percent(machine.fitted.mean),
                   percent(machine.left_out.mean), percent(machine.left_out.median),
                   percent(machine.calibration.low - 1), percent(machine.calibration.high - 1)});
  return table.text(width);
}

}  // namespace

ordered_json parameters_json(const std::vector<profile::TrainingRow>& rows,
                             const profile::Calibration& calibration) {
  std::set<std::string> machines;
  for (const profile::TrainingRow& row : rows) machines.insert(row.machine);
  ordered_json all = ordered_json::array();
  for (const std::string& name : machines) {
    const auto found = calibration.find(name);
    const profile::ParameterValues& values =
        planner::values_of(profile::machine_named(name), calibration);
    for (const Parameter parameter : every<Parameter>()) {
      const profile::ParameterFacts& facts = profile::facts_of(parameter);
      all.push_back({{"name", profile::to_string(parameter)},
                     {"machine", name},
                     {"value", values[parameter]},
                     {"unit", facts.unit},
                     {"fitted", found != calibration.end() && found->second.is_fitted(parameter)},
                     {"low", facts.low},
                     {"high", facts.high},
                     {"meaning", facts.meaning}});
    }
  }
  return all;
}

Answer profile_fit_command(const Options& options) {
  const Duration begin = now();
  if (!options.out.empty()) report::require_new_file(options.out);
  const std::string& file = options.files.front();
  const auto rows = profile::read_training_rows(read_text_file(file), file);
  const planner::PredictOptions how{options.predict.extrapolate ? profile::Extrapolation::allowed
                                                                : profile::Extrapolation::refused};
  const planner::Fit fit = planner::fit_parameters(rows, how);
  const profile::Calibration calibration = fit.calibration();
  if (!options.out.empty())
    report::write_new_file(options.out, [&](std::ostream& out) { out << to_text(calibration); });
  if (!options.json) return {fit_text(fit, table_width(options))};
  ordered_json json = report::record_header(
      {.numbers = "simulated", .creator = "longhaul", .command_line = options.command_line});
  json["machines"] = ordered_json::array();
  for (const MachineFit& machine : fit.machines) json["machines"].push_back(machine_json(machine));
  json["errors"] = {{"unfitted", errors_json(fit.unfitted)},
                    {"fitted", errors_json(fit.fitted)},
                    {"left_out", errors_json(fit.left_out)}};
  json["parameters"] = parameters_json(rows, calibration);
  json["seconds"] = std::chrono::duration<double>(now() - begin).count();
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
