#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "scenario/scenario.hpp"

namespace longhaul::scenario {

struct ConfigNode;

/// Must a file say in which datacenter each stage lies?
enum class Placing : std::uint8_t {
  required,
  optional,  ///< several datacenters without `stages` and `replicas`: Scenario::is_placed() is
             ///< false
};

/// Reads a scenario file (TOML; docs/scenario.md). `overrides` are "PATH=VALUE" texts of --set:
/// run.seed=3, link.latency_ratio=2 (all links), link.west-east.latency=40ms,
/// datacenter.east.gpus=8. Throws Error "file:line:column: what (why). What to do."
[[nodiscard]] Scenario load_scenario(const std::filesystem::path& file,
                                     std::span<const std::string> overrides = {},
                                     Placing placing = Placing::required);
/// The same from a text; `source` stands for the file's name in errors.
[[nodiscard]] Scenario parse_scenario(std::string_view toml, const std::string& source,
                                      std::span<const std::string> overrides = {},
                                      Placing placing = Placing::required);

/// The tree of a scenario's text that parse_scenario() reads: with the files that say costs and
/// links, and with the texts of --set. For what is asked of a scenario before it is loaded. Throws
/// Error.
[[nodiscard]] ConfigNode scenario_tree(std::string_view toml, const std::string& source,
                                       std::span<const std::string> overrides = {});

}  // namespace longhaul::scenario
