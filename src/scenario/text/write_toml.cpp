#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenario/text/config_node.hpp"

namespace longhaul::scenario {
namespace {

/// A basic string: with escapes for quotes, backslashes and control characters.
std::string string_text(std::string_view text) {
  constexpr unsigned char kFirstPrinted = 0x20, kDelete = 0x7f;
  std::string all = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\')
      (all += '\\') += letter;
    else if (code < kFirstPrinted || code == kDelete)
      all += fmt::format("\\u{:04x}", code);
    else
      all += letter;
  }
  return all + '"';
}

std::string key_text(const std::string& key) {
  const bool is_bare = !key.empty() && std::ranges::all_of(key, [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
  });
  return is_bare ? key : string_text(key);
}

std::string value_text(const ConfigNode& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case ConfigNode::Kind::integer: return fmt::format("{}", node.integer);
    case ConfigNode::Kind::boolean: return node.integer != 0 ? "true" : "false";
    case ConfigNode::Kind::real: {
      const std::string shortest = fmt::format("{}", node.real);
      return shortest.find_first_of(".en") == std::string::npos ? shortest + ".0" : shortest;
    }
    case ConfigNode::Kind::list:
      for (const ConfigNode& each : node.items) parts.push_back(value_text(each));
      return fmt::format("[{}]", fmt::join(parts, ", "));
    case ConfigNode::Kind::table:
      for (const ConfigEntry& each : node.entries)
        parts.push_back(fmt::format("{} = {}", key_text(each.key), value_text(each.value)));
      return fmt::format("{{ {} }}", fmt::join(parts, ", "));
    case ConfigNode::Kind::text:
    case ConfigNode::Kind::other: return string_text(node.text);
  }
  return {};
}

std::string entries_text(const ConfigNode& table) {
  std::string text;
  for (const ConfigEntry& each : table.entries)
    text += fmt::format("{} = {}\n", key_text(each.key), value_text(each.value));
  return text;
}

bool is_table(const ConfigNode& node) { return node.kind == ConfigNode::Kind::table; }

}  // namespace

std::string toml_text(const ConfigNode& root) {
  std::string values, tables;
  for (const ConfigEntry& each : root.entries) {
    const ConfigNode& value = each.value;
    if (is_table(value)) {
      tables += fmt::format("[{}]\n{}", key_text(each.key), entries_text(value));
    } else if (!value.items.empty() && std::ranges::all_of(value.items, is_table)) {
      for (const ConfigNode& item : value.items)
        tables += fmt::format("[[{}]]\n{}", key_text(each.key), entries_text(item));
    } else {
      values += fmt::format("{} = {}\n", key_text(each.key), value_text(value));
    }
  }
  return values + tables;
}

}  // namespace longhaul::scenario
