#include "planner/predict/robust_fit.hpp"

#include <algorithm>
#include <cmath>

#include "planner/predict/predict.hpp"

namespace longhaul::planner {
namespace {

using profile::Parameter;
using profile::ParameterValues;

constexpr std::size_t kCount = static_cast<std::size_t>(kCountOf<Parameter>);
using Vector = std::array<double, kCount>;

constexpr double kDelta = 0.05;       ///< errors beyond it count less and less
constexpr double kScale = 0.04;       ///< a row's error of this size weighs as a spread
constexpr double kLongestStep = 0.7;  ///< of a logarithm
constexpr double kEnough = 1e-4;      ///< of the loss
constexpr double kNoEffect = 1e-4;

double spread(std::size_t i) { return profile::facts_of(static_cast<Parameter>(i)).spread; }

Vector logarithms(const ParameterValues& values) {
  Vector all{};
  for (std::size_t i = 0; i < kCount; ++i) all[i] = std::log(values[static_cast<Parameter>(i)]);
  return all;
}
ParameterValues values_at(const Vector& logarithm) {
  ParameterValues values;
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto parameter = static_cast<Parameter>(i);
    const profile::ParameterFacts& facts = profile::facts_of(parameter);
    values[parameter] = std::clamp(std::exp(logarithm[i]), facts.low, facts.high);
  }
  return values;
}

/// Errors and their derivatives at a point.
struct Linear {
  double loss = 0;
  Vector gradient{};
  std::array<Vector, kCount> hessian{};
  Vector effect{};  ///< the largest derivative of any row
};

class Problem {
public:
  Problem(const std::vector<FitRow*>& rows, const ParameterValues& defaults)
      : rows_{rows}, defaults_{logarithms(defaults)} {}

  [[nodiscard]] Linear at(const Vector& point) const {
    const ParameterValues values = values_at(point);
    Linear all;
    for (std::size_t i = 0; i < kCount; ++i) {
      const double off = (point[i] - defaults_[i]) / spread(i);
      all.loss += 0.5 * off * off;
      all.gradient[i] = off / spread(i);
      all.hessian[i][i] = 1 / (spread(i) * spread(i));
    }
    for (FitRow* row : rows_) add(*row, values, all);
    return all;
  }

private:
  static void add(FitRow& row, const ParameterValues& values, Linear& all) {
    const RowRun run = row.plan.run(values);
    const double error = std::log(static_cast<double>(run.iteration.count()) /
                                  static_cast<double>(row.measured.count()));
    const double ratio = error / kDelta;
    const double weight = 1 / (kDelta * kScale * (1 + ratio * ratio));
    all.loss += 0.5 * kDelta / kScale * std::log1p(ratio * ratio);
    const std::vector<double> by = sensitivities(row.plan, run, values);
    for (std::size_t i = 0; i < kCount; ++i) {
      all.gradient[i] += weight * error * by[i];
      all.effect[i] = std::max(all.effect[i], std::abs(by[i]));
      for (std::size_t j = 0; j < kCount; ++j) all.hessian[i][j] += weight * by[i] * by[j];
    }
  }

  const std::vector<FitRow*>& rows_;
  Vector defaults_;
};

/// Solves matrix x = right by elimination; the matrix is positive definite.
Vector solved(std::array<Vector, kCount> matrix, Vector right) {
  for (std::size_t pivot = 0; pivot < kCount; ++pivot)
    for (std::size_t row = pivot + 1; row < kCount; ++row) {
      const double factor = matrix[row][pivot] / matrix[pivot][pivot];
      for (std::size_t column = pivot; column < kCount; ++column)
        matrix[row][column] -= factor * matrix[pivot][column];
      right[row] -= factor * right[pivot];
    }
  for (std::size_t row = kCount; row-- > 0;) {
    for (std::size_t column = row + 1; column < kCount; ++column)
      right[row] -= matrix[row][column] * right[column];
    right[row] /= matrix[row][row];
  }
  return right;
}

Vector moved(const Vector& point, const Linear& linear, double damping) {
  std::array<Vector, kCount> matrix = linear.hessian;
  for (std::size_t i = 0; i < kCount; ++i) matrix[i][i] *= 1 + damping;
  const Vector step = solved(matrix, linear.gradient);
  Vector next = point;
  for (std::size_t i = 0; i < kCount; ++i)
    next[i] -= std::clamp(step[i], -kLongestStep, kLongestStep);
  return logarithms(values_at(next));  // within the ranges
}

}  // namespace

RobustFit fit_robustly(const std::vector<FitRow*>& rows, const ParameterValues& defaults,
                       const ParameterValues& start, int steps) {
  const Problem problem{rows, defaults};
  Vector point = logarithms(start);
  Linear here = problem.at(point);
  double damping = 1e-2;
  for (int step = 0; step < steps && damping < 1e6;) {
    const Vector next = moved(point, here, damping);
    const Linear there = problem.at(next);
    if (there.loss >= here.loss) {
      damping *= 4;
      continue;
    }
    ++step;
    const bool is_enough = here.loss - there.loss < kEnough;
    point = next;
    here = there;
    damping /= 3;
    if (is_enough) break;
  }
  RobustFit fit{values_at(point), {}, here.loss};
  for (std::size_t i = 0; i < kCount; ++i) {
    fit.fitted[i] = here.effect[i] > kNoEffect;
    const auto parameter = static_cast<Parameter>(i);
    if (!fit.fitted[i]) fit.values[parameter] = defaults[parameter];
  }
  return fit;
}

}  // namespace longhaul::planner
