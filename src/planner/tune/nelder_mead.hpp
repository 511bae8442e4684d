#pragma once

#include <functional>
#include <span>
#include <vector>

namespace longhaul::planner {

struct NelderMeadOptions {
  double step = 0.5;         ///< from the start to the other corners of the first simplex
  double tolerance = 1e-10;  ///< between the values of the best and the worst corner, relative
  int most_evaluations = 1000;
};

struct Minimum {
  std::vector<double> at;
  double value = 0;
  int evaluations = 0;
};

/// A local minimum without derivatives (Nelder and Mead 1965): reflection 1, expansion 2,
/// contraction and shrinkage 1/2. Infinite values are allowed, where a point cannot be.
[[nodiscard]] Minimum nelder_mead(const std::function<double(std::span<const double>)>& function,
                                  const std::vector<double>& start,
                                  const NelderMeadOptions& options = {});

}  // namespace longhaul::planner
