#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/predict/fit.hpp"

namespace longhaul::cli {

/// The parameters of each machine that rows name, as they were taken: machine, name, value, unit,
/// fitted, meaning.
[[nodiscard]] nlohmann::ordered_json parameters_json(const std::vector<profile::TrainingRow>& rows,
                                                     const profile::Calibration& calibration);

/// Which groups of a row's ranks leave a node: of tensor ranks, of replicas and of the borders
/// between stages. `stride`: from one rank of a group to the next, as ranks are numbered tensor
/// first, then data, then pipeline; `share_node`: groups that share a node's interfaces.
[[nodiscard]] nlohmann::ordered_json rings_json(const profile::TrainingRow& row,
                                                const profile::Machine& machine);
/// "d, p": those that leave a node; "-": none.
[[nodiscard]] std::string rings_text(const profile::TrainingRow& row,
                                     const profile::Machine& machine);

}  // namespace longhaul::cli
