#pragma once

#include <span>
#include <string>
#include <string_view>

#include "scenario/text/config_node.hpp"

namespace longhaul::scenario {

/// The tree of a scenario's text that parse_scenario() reads: with the files that say costs and
/// links, and with the texts of --set. For what is asked of a scenario before it is loaded. Throws
/// Error.
[[nodiscard]] ConfigNode scenario_tree(std::string_view toml, const std::string& source,
                                       std::span<const std::string> overrides = {});

}  // namespace longhaul::scenario
