#include "planner/predict/predict.hpp"

#include <cmath>

#include "base/error.hpp"

namespace longhaul::planner {
namespace {

using profile::Parameter;
using profile::ParameterValues;

constexpr double kNinetyPercent = 1.6449;  ///< of a normal distribution, on each side
constexpr double kSmallStep = 1e-4;

double on_path(const std::vector<SlotTime>& slots, const RowRun& run) {
  double sum = 0;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const SlotTime& time = slots[slot];
    sum += run.on_path[slot] *
           (time.compute + time.tensor + time.pipeline + time.data + time.optimizer);
  }
  return sum;
}

Duration scaled(Duration time, double factor) {
  return Duration{std::llround(static_cast<double>(time.count()) * factor)};
}

/// Relative, of the logarithm.
double unfitted_spread(const RowPlan& plan, const RowRun& run, const ParameterValues& values) {
  double variance = kModelSpread * kModelSpread;
  const std::vector<double> by = sensitivities(plan, run, values);
  for (const Parameter parameter : every<Parameter>()) {
    const double share =
        by[static_cast<std::size_t>(parameter)] * profile::facts_of(parameter).spread;
    variance += share * share;
  }
  return std::sqrt(variance);
}

RowPrediction predict_row(const profile::TrainingRow& row, const profile::Calibration& calibration,
                          const PredictOptions& options) {
  const profile::Machine& machine = profile::machine_named(row.machine);
  const ParameterValues& values = values_of(machine, calibration);
  RowPlan plan{profile::row_graph(row, machine, options.extrapolation)};
  const RowRun run = plan.run(values);
  RowPrediction prediction;
  prediction.iteration = run.iteration;
  if (const auto found = calibration.find(row.machine); found != calibration.end()) {
    prediction.low = scaled(run.iteration, found->second.low);
    prediction.high = scaled(run.iteration, found->second.high);
  } else {
    const double width = kNinetyPercent * unfitted_spread(plan, run, values);
    prediction.low = scaled(run.iteration, std::exp(-width));
    prediction.high = scaled(run.iteration, std::exp(width));
  }
  prediction.parts = run.parts;
  prediction.memory = profile::memory_of(row).total();
  prediction.fits = prediction.memory <= machine.memory;
  prediction.basis = plan.graph().basis;
  prediction.beyond = plan.graph().beyond;
  prediction.ops = plan.plan().ops.size();
  return prediction;
}

}  // namespace

const ParameterValues& values_of(const profile::Machine& machine,
                                 const profile::Calibration& calibration) {
  const auto found = calibration.find(machine.name);
  return found == calibration.end() ? machine.parameters : found->second.values;
}

std::vector<double> sensitivities(const RowPlan& plan, const RowRun& run,
                                  const ParameterValues& values) {
  const double at_values = on_path(plan.times(values), run);
  std::vector<double> by;
  for (const Parameter parameter : every<Parameter>()) {
    ParameterValues moved = values;
    moved[parameter] *= 1 + kSmallStep;
    by.push_back((on_path(plan.times(moved), run) / at_values - 1) / kSmallStep);
  }
  return by;
}

std::vector<RowPrediction> predict(const std::vector<profile::TrainingRow>& rows,
                                   const profile::Calibration& calibration,
                                   const PredictOptions& options) {
  std::vector<RowPrediction> predictions;
  predictions.reserve(rows.size());
  for (const profile::TrainingRow& row : rows)
    predictions.push_back(predict_row(row, calibration, options));
  return predictions;
}

}  // namespace longhaul::planner
