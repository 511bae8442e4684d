#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::report {

/// "1 stage", "4 stages", "1 microbatch", "8 microbatches".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);

/// "4 stages, 1 replica, 8 microbatches".
[[nodiscard]] std::string size_text(const Scenario& scenario);
/// Settings of the scenario that predictions leave out: "run.noise", "run.stragglers".
[[nodiscard]] std::vector<std::string> ignored_settings(const Scenario& scenario);
/// A line for people that names them, after an empty line; nothing where none is set. `but`
/// follows their purpose: "; weather counts in its own table".
[[nodiscard]] std::string ignored_text(const Scenario& scenario, std::string_view but = "");

/// A line for people on blocks that slow beside messages, after an empty line; nothing where none
/// does. At block granularity it says that blocks tell nothing of their operators.
[[nodiscard]] std::string overlap_text(const Scenario& scenario, Granularity granularity);
/// By name of level.
[[nodiscard]] nlohmann::ordered_json overlap_json(const Scenario& scenario);

/// Regions, nodes and prices of the datacenters, for people; nothing where none is given.
[[nodiscard]] std::string site_table(const Scenario& scenario);
/// Links for people; columns of connections, aggregates and regions where a link has them.
[[nodiscard]] std::string link_table(const Scenario& scenario);

[[nodiscard]] nlohmann::ordered_json sites_json(const Scenario& scenario);
[[nodiscard]] nlohmann::ordered_json links_json(const Scenario& scenario);

}  // namespace longhaul::report
