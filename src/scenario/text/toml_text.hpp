#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "scenario/text/config_node.hpp"

namespace longhaul::scenario {

/// The largest scenario text that is read.
inline constexpr std::size_t kLargestText = std::size_t{1} << 20;

/// Reads TOML 1.0 into a tree of our own; the one place that knows the TOML library. Bounded: texts
/// up to kLargestText, keys up to 32 levels, values nested up to the library's limit (256). Throws
/// Error with the place of the first mistake.
[[nodiscard]] ConfigNode parse_toml(std::string_view text,
                                    std::shared_ptr<const std::string> source);

/// One TOML value, all its places being `place`; nullopt where the text is no TOML value.
[[nodiscard]] std::optional<ConfigNode> parse_toml_value(std::string_view text, const Place& place);

}  // namespace longhaul::scenario
