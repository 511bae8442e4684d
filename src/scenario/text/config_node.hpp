#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace longhaul::scenario {

/// Where a value of the configuration stands: in the file, or on the command line.
struct ConfigPosition {
  std::shared_ptr<const std::string> origin;  ///< the file's name, or "--set PATH=VALUE"
  std::uint32_t line = 0;                     ///< 0: not in a file
  std::uint32_t column = 0;
};

/// "file:line:column", or the option as it was typed.
[[nodiscard]] std::string to_text(const ConfigPosition& place);

/// Throws Error "place: text".
template <typename... Args>
[[noreturn]] void fail_at(const ConfigPosition& place, fmt::format_string<Args...> format,
                          Args&&... args) {
  throw Error{to_text(place) + ": " + fmt::format(format, std::forward<Args>(args)...)};
}

struct ConfigEntry;

/// A value read from TOML, free of the reader's types, with its place.
struct ConfigNode {
  enum class Kind : std::uint8_t { text, integer, real, boolean, list, table, other };

  Kind kind = Kind::table;
  ConfigPosition place;
  std::string text;          ///< text; of `other`: what it is
  std::int64_t integer = 0;  ///< integer, boolean
  double real = 0;
  std::vector<ConfigNode> items;     ///< list
  std::vector<ConfigEntry> entries;  ///< table, in the order of the file

  /// nullptr where the table has no such key.
  [[nodiscard]] const ConfigNode* find(std::string_view key) const;
  [[nodiscard]] ConfigNode* find(std::string_view key);
};

struct ConfigEntry {
  std::string key;
  ConfigPosition place;  ///< of the key
  ConfigNode value;
};

/// Sets or adds `key` of a table.
void assign(ConfigNode& table, const std::string& key, ConfigNode value);
/// Removes `key` of a table, if it is there.
void remove(ConfigNode& table, std::string_view key);

/// Name of the value in messages: "40ms" in quotes, 40, true, a list, a table, a date.
[[nodiscard]] std::string to_text(const ConfigNode& node);
/// Text of a stranger for a message: at most 60 characters, control characters as '?'.
[[nodiscard]] std::string shown(std::string_view text);

/// The largest scenario text that is read: 1,024 datacenters and some 200,000 links.
inline constexpr std::size_t kLargestText = std::size_t{1} << 24;

/// Reads TOML 1.0 into a tree of our own; the one place that knows the TOML library. Bounded: texts
/// up to kLargestText, keys up to 32 levels, values nested up to the library's limit (256). Throws
/// Error with the place of the first mistake.
[[nodiscard]] ConfigNode parse_toml(std::string_view text,
                                    std::shared_ptr<const std::string> source);

/// The tree as TOML that parse_toml() reads to the same one, but for places: tables of the root as
/// [key] or [[key]] after its values, others as { .. }. A scenario has no values of `other` kind.
[[nodiscard]] std::string toml_text(const ConfigNode& root);

/// One TOML value, all its places being `place`; nullopt where the text is no TOML value.
[[nodiscard]] std::optional<ConfigNode> parse_toml_value(std::string_view text,
                                                         const ConfigPosition& place);

}  // namespace longhaul::scenario
