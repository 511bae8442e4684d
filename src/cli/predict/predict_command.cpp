#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/table.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/predict/parameters_json.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using planner::RowPrediction;
using profile::TrainingRow;

/// `none` and nothing: machines' defaults.
profile::Calibration calibration_of(const std::string& option) {
  if (option.empty() || option == "none") return {};
  return profile::read_calibration(read_text_file(option), option);
}

/// Whole nanoseconds that add up to the iteration: each part is what it adds to the rounded sum of
/// those before it, so that none is below 0; the rest is the bubble's.
ordered_json parts_json(const RowPrediction& row) {
  const planner::IterationParts& parts = row.parts;
  double sum = 0;
  std::int64_t before = 0;
  const auto next = [&](double ns) {
    sum += ns;
    const std::int64_t end = std::min(std::int64_t{std::llround(sum)}, row.iteration.count());
    return end - std::exchange(before, end);
  };
  const std::int64_t compute = next(parts.compute), tensor = next(parts.tensor);
  const std::int64_t pipeline = next(parts.pipeline), data = next(parts.data);
  const std::int64_t optimizer = next(parts.optimizer);
  return {{"compute", compute},
          {"tensor", tensor},
          {"pipeline", pipeline},
          {"data", data},
          {"bubble", row.iteration.count() - before},
          {"optimizer", optimizer}};
}

ordered_json row_json(const TrainingRow& row, const RowPrediction& prediction) {
  return {{"row", row.row},
          {"iteration_ns", prediction.iteration.count()},
          {"low_ns", prediction.low.count()},
          {"high_ns", prediction.high.count()},
          {"parts", parts_json(prediction)},
          {"memory_bytes", prediction.memory.count()},
          {"fits", prediction.fits},
          {"basis", profile::to_string(prediction.basis)},
          {"beyond", prediction.beyond},
          {"rings", rings_json(row, profile::machine_named(row.machine))},
          {"products_as", row.precision == "fp8" ? "bf16" : row.precision}};
}

std::string text_of(const std::vector<TrainingRow>& rows,
                    const std::vector<RowPrediction>& predictions, TableWidth width) {
  Table table{{{"row", Align::left},
               {"machine", Align::left, 2},
               {"model", Align::left, 1},
               {"t,d,p", Align::left},
               {"iteration"},
               {"from"},
               {"to"},
               {"memory"},
               {"fits", Align::left},
               {"leave nodes", Align::left, 4},
               {"products", Align::left, 3}}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TrainingRow& row = rows[i];
    const RowPrediction& prediction = predictions[i];
    table.add_row({row.row, row.machine, row.model,
                   fmt::format("{},{},{}", row.tensor, row.data, row.pipeline),
                   to_text(prediction.iteration), to_text(prediction.low), to_text(prediction.high),
                   to_text(prediction.memory), prediction.fits ? "yes" : "no",
                   rings_text(row, profile::machine_named(row.machine)),
                   profile::to_string(prediction.basis)});
  }
  std::string text = table.text(width);
  const auto eighths = std::ranges::count(rows, "fp8", &TrainingRow::precision);
  if (eighths > 0)
    text += fmt::format("! {} of fp8: products are taken to be as fast as those of bf16.\n",
                        report::counted(eighths, "row"));
  return text;
}

}  // namespace

Answer predict_command(const Options& options) {
  const Duration begin = now();
  const std::string& file = options.files.front();
  const std::vector<TrainingRow> rows = profile::read_training_rows(read_text_file(file), file);
  const profile::Calibration calibration = calibration_of(options.predict.calibration);
  const planner::PredictOptions how{options.predict.extrapolate ? profile::Extrapolation::allowed
                                                                : profile::Extrapolation::refused};
  const std::vector<RowPrediction> predictions = planner::predict(rows, calibration, how);
  if (!options.json) return {text_of(rows, predictions, table_width(options))};
  ordered_json json = report::record_header(
      {.numbers = "simulated", .creator = "longhaul", .command_line = options.command_line});
  json["rows"] = ordered_json::array();
  std::size_t ops = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    json["rows"].push_back(row_json(rows[i], predictions[i]));
    ops += predictions[i].ops;
  }
  json["parameters"] = parameters_json(rows, calibration);
  json["ops"] = ops;
  json["seconds"] = std::chrono::duration<double>(now() - begin).count();
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
