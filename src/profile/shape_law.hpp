#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/matmul_law.hpp"
#include "scenario/files/profile_table.hpp"
#include "scenario/needed_operators.hpp"

namespace longhaul::profile {

/// The time of a shape, and where it comes from.
struct ShapeTime {
  Duration time{};
  TimeBasis basis = TimeBasis::measured;
  double beyond = 1;  ///< how many times a side lies outside the measured ones
};

/// Times of one operator and type by its shape: launch + work / rate, the work being FLOPs of
/// products and attention and values moved of all others, corrected by the nearest measured shapes.
class ShapeLaw {
public:
  /// At least one row, all of one operator and type.
  explicit ShapeLaw(std::vector<scenario::ProfileRow> rows);
  [[nodiscard]] ShapeTime at(std::string_view shape) const;
  [[nodiscard]] std::size_t shapes() const { return known_.size(); }
  /// Mean of |law / measured - 1| over the shapes (of many some 200), each predicted from the
  /// others; 0 for fewer than two.
  [[nodiscard]] double left_out() const;

private:
  struct Known {
    std::map<std::string, double> sides;  ///< logarithms
    double work = 0, ns = 0;
  };
  [[nodiscard]] double law_ns(double work) const;
  void fit();
  [[nodiscard]] double corrected_ns(const Known& wanted) const;

  std::string operation_;
  std::map<std::string, Duration> measured_;  ///< by shape
  std::vector<Known> known_;
  double launch_ns_ = 0, ns_per_work_ = 0;
};

/// The laws of a profile, by operator and type.
using ShapeLaws = std::map<std::pair<std::string, std::string>, ShapeLaw>;
[[nodiscard]] ShapeLaws shape_laws(const scenario::ProfileTable& profile);

/// What an operator of that shape does: FLOPs, or values moved.
[[nodiscard]] double work_of(std::string_view operation, std::string_view shape);

}  // namespace longhaul::profile
