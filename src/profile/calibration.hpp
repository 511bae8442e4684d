#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "profile/parameters.hpp"

namespace longhaul::profile {

/// What rows of one machine taught about its parameters.
struct MachineCalibration {
  ParameterValues values;
  std::array<bool, static_cast<std::size_t>(kCountOf<Parameter>)> fitted{};
  /// 90% of measured times, each against a prediction fitted without its group, lie between these
  /// times the prediction.
  double low = 0.9, high = 1.1;
  [[nodiscard]] bool is_fitted(Parameter parameter) const {
    return fitted[static_cast<std::size_t>(parameter)];
  }
};

/// By machine.
using Calibration = std::map<std::string, MachineCalibration, std::less<>>;

/// As `longhaul profile fit` writes it: TOML, a table for each machine. Throws Error with the place
/// of what is wrong.
[[nodiscard]] Calibration read_calibration(std::string_view text, const std::string& source);
[[nodiscard]] std::string to_text(const Calibration& calibration);

}  // namespace longhaul::profile
