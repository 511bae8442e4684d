#include "planner/tune/nelder_mead.hpp"

#include <algorithm>
#include <cmath>

namespace longhaul::planner {
namespace {

struct Corner {
  std::vector<double> at;
  double value = 0;
};

/// A simplex on its way down.
class Simplex {
public:
  Simplex(const std::function<double(std::span<const double>)>& function,
          const std::vector<double>& start, double step)
      : function_{function} {
    corners_.push_back(corner(start));
    for (std::size_t i = 0; i < start.size(); ++i) {
      std::vector<double> moved = start;
      moved[i] += step;
      corners_.push_back(corner(std::move(moved)));
    }
    sort();
  }

  [[nodiscard]] bool is_flat(double tolerance) const {
    const double low = corners_.front().value, high = corners_.back().value;
    return high - low <= tolerance * (std::fabs(low) + std::fabs(high)) || low == high;
  }
  [[nodiscard]] int evaluations() const { return evaluations_; }
  [[nodiscard]] const Corner& best() const { return corners_.front(); }

  void move() {
    Corner& worst = corners_.back();
    const double second_worst = corners_[corners_.size() - 2].value;
    Corner reflected = corner(through_center(-1));
    if (reflected.value < corners_.front().value) {
      Corner expanded = corner(through_center(-2));
      worst = expanded.value < reflected.value ? std::move(expanded) : std::move(reflected);
    } else if (reflected.value < second_worst) {
      worst = std::move(reflected);
    } else {
      const bool outside = reflected.value < worst.value;
      Corner contracted = corner(through_center(outside ? -0.5 : 0.5));
      if (contracted.value < std::min(reflected.value, worst.value))
        worst = std::move(contracted);
      else
        shrink();
    }
    sort();
  }

private:
  Corner corner(std::vector<double> at) {
    ++evaluations_;
    const double value = function_(at);
    return {std::move(at), std::isnan(value) ? HUGE_VAL : value};
  }

  /// The center of all corners but the worst, and from there `factor` times the way to that one.
  [[nodiscard]] std::vector<double> through_center(double factor) const {
    const std::vector<double>& worst = corners_.back().at;
    std::vector<double> point(worst.size());
    for (std::size_t i = 0; i < point.size(); ++i) {
      double sum = 0;
      for (std::size_t c = 0; c + 1 < corners_.size(); ++c) sum += corners_[c].at[i];
      const double center = sum / static_cast<double>(corners_.size() - 1);
      point[i] = center + factor * (worst[i] - center);
    }
    return point;
  }

  void shrink() {
    const std::vector<double> best = corners_.front().at;
    for (std::size_t c = 1; c < corners_.size(); ++c) {
      std::vector<double> at = corners_[c].at;
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = best[i] + 0.5 * (at[i] - best[i]);
      corners_[c] = corner(std::move(at));
    }
  }

  void sort() { std::ranges::stable_sort(corners_, {}, &Corner::value); }

  const std::function<double(std::span<const double>)>& function_;
  std::vector<Corner> corners_;
  int evaluations_ = 0;
};

}  // namespace

Minimum nelder_mead(const std::function<double(std::span<const double>)>& function,
                    const std::vector<double>& start, const NelderMeadOptions& options) {
  Simplex simplex{function, start, options.step};
  while (!start.empty() && simplex.evaluations() < options.most_evaluations &&
         !simplex.is_flat(options.tolerance))
    simplex.move();
  return {simplex.best().at, simplex.best().value, simplex.evaluations()};
}

}  // namespace longhaul::planner
