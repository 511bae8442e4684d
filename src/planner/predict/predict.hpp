#pragma once

#include <cstddef>
#include <vector>

#include "planner/predict/row_plan.hpp"
#include "profile/calibration.hpp"
#include "profile/row_memory.hpp"

namespace longhaul::planner {

/// The prediction of one row, simulated.
struct RowPrediction {
  Duration iteration{};
  Duration low{}, high{};  ///< 90% of measured iterations lie between
  IterationParts parts;
  Bytes memory;
  bool fits = false;  ///< in the memory of the machine's GPU
  profile::TimeBasis basis = profile::TimeBasis::interpolated;
  double beyond = 1;    ///< how many times outside the measured sides a product is
  std::size_t ops = 0;  ///< of the plan
};

struct PredictOptions {
  profile::Extrapolation extrapolation = profile::Extrapolation::refused;
};

/// The parameters of a machine: its calibration's where there is one, otherwise its defaults.
[[nodiscard]] const profile::ParameterValues& values_of(const profile::Machine& machine,
                                                        const profile::Calibration& calibration);

/// Each row goes through its operator graph, a plan and the simulator. What a row took is not read.
/// Intervals of calibrated machines are those of their calibration; of others what the parameters'
/// spreads and the model's own error (kModelSpread) let expect, to first order along the critical
/// path. Throws Error for an unknown machine, a schedule that is not defined, a product too far
/// beyond the measured ones.
[[nodiscard]] std::vector<RowPrediction> predict(const std::vector<profile::TrainingRow>& rows,
                                                 const profile::Calibration& calibration,
                                                 const PredictOptions& options = {});

/// Standard deviation of the logarithm of what the graph leaves out, before anything is fitted.
inline constexpr double kModelSpread = 0.06;

/// Derivatives of the logarithm of a run's iteration by that of each parameter, index: Parameter.
[[nodiscard]] std::vector<double> sensitivities(const RowPlan& plan, const RowRun& run,
                                                const profile::ParameterValues& values);

}  // namespace longhaul::planner
