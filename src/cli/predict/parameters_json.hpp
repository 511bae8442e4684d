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

/// What of a plan lies in several datacenters; as it is here: nothing.
struct ApartRanks {
  std::vector<int> sites_of_stages;
  bool replicas = false;
};

/// Which groups of a row's ranks leave a node: of tensor ranks, of replicas and of the borders
/// between stages. `stride`: from one rank of a group to the next, as ranks are numbered tensor
/// first, then data, then pipeline; `share_node`: groups that share a node's interfaces. What lies
/// in several datacenters leaves its node.
[[nodiscard]] nlohmann::ordered_json rings_json(const profile::TrainingRow& row,
                                                const profile::Machine& machine,
                                                const ApartRanks& apart = {});
/// "d, p": those that leave a node; "-": none.
[[nodiscard]] std::string rings_text(const profile::TrainingRow& row,
                                     const profile::Machine& machine, const ApartRanks& apart = {});

}  // namespace longhaul::cli
