#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scenario/scenario.hpp"

namespace longhaul::report {

/// Regions, nodes and prices of the datacenters, for people; nothing where none is given.
[[nodiscard]] std::string site_table(const Scenario& scenario);
/// Links for people; columns of connections, aggregates and regions where a link has them.
[[nodiscard]] std::string link_table(const Scenario& scenario);

[[nodiscard]] nlohmann::ordered_json sites_json(const Scenario& scenario);
[[nodiscard]] nlohmann::ordered_json links_json(const Scenario& scenario);

}  // namespace longhaul::report
