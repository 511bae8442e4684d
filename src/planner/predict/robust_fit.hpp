#pragma once

#include <array>
#include <vector>

#include "planner/predict/row_plan.hpp"

namespace longhaul::planner {

/// A row with what it took.
struct FitRow {
  RowPlan plan;
  Duration measured{};
};

struct RobustFit {
  profile::ParameterValues values;
  std::array<bool, static_cast<std::size_t>(kCountOf<profile::Parameter>)> fitted{};
  double loss = 0;
};

inline constexpr int kManySteps = 30;
inline constexpr int kFewSteps = 6;  ///< from a fit of nearly the same rows

/// The parameters whose loss (fit_parameters()) no step of Levenberg and Marquardt lowers, from
/// `start` on, after `steps` at most. The rows' plans are run. The same on every machine up to the
/// last digits of the standard library's logarithm.
[[nodiscard]] RobustFit fit_robustly(const std::vector<FitRow*>& rows,
                                     const profile::ParameterValues& defaults,
                                     const profile::ParameterValues& start, int steps);

}  // namespace longhaul::planner
