#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/predict/fit.hpp"

namespace longhaul::cli {

/// The parameters of each machine that rows name, as they were taken: machine, name, value, unit,
/// fitted, meaning.
[[nodiscard]] nlohmann::ordered_json parameters_json(const std::vector<profile::TrainingRow>& rows,
                                                     const profile::Calibration& calibration);

}  // namespace longhaul::cli
