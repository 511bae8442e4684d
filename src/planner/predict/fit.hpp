#pragma once

#include <string>
#include <vector>

#include "planner/predict/predict.hpp"

namespace longhaul::planner {

/// Absolute relative errors of predictions.
struct PredictionErrors {
  double mean = 0, median = 0, largest = 0;
};

/// The fit of one machine kind.
struct MachineFit {
  std::string machine;
  int rows = 0;
  int groups = 0;
  profile::MachineCalibration calibration;
  PredictionErrors unfitted;  ///< of the machine's defaults
  PredictionErrors fitted;    ///< on the rows that were fitted
  PredictionErrors left_out;  ///< of each group (h, t, d, p), from the others
  std::vector<double>
      left_out_ratios;  ///< measured over predicted, each row left out with its group
};

struct Fit {
  std::vector<MachineFit> machines;
  PredictionErrors unfitted, fitted, left_out;  ///< of all rows
  [[nodiscard]] profile::Calibration calibration() const;
};

/// Fits the parameters of each machine of the rows to their measured times: the least sum of
/// log(1 + (r / c)^2) over logarithms r of predicted over measured (Cauchy's loss: rows far off
/// pull ever less), plus the squared distance of each parameter from its default in spreads, within
/// its range. At most 12 numbers a machine kind; those that no row depends on stay as they are.
/// Intervals: the shortest that holds 90% of the ratios of left-out rows. Throws Error where a row
/// has no measured time, or as predict() does.
[[nodiscard]] Fit fit_parameters(const std::vector<profile::TrainingRow>& rows,
                                 const PredictOptions& options = {});

/// The shortest interval that holds nine tenths of `ratios`, to the nearest one, and 1.
struct RatioInterval {
  double low = 1, high = 1;
};
[[nodiscard]] RatioInterval shortest_interval(std::vector<double> ratios);

}  // namespace longhaul::planner
