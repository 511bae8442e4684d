#include "scenario/text/config_node.hpp"

#include <algorithm>

namespace longhaul::scenario {

std::string to_text(const ConfigPosition& place) {
  if (place.line == 0) return *place.origin;
  return fmt::format("{}:{}:{}", *place.origin, place.line, place.column);
}

const ConfigNode* ConfigNode::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const ConfigEntry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

ConfigNode* ConfigNode::find(std::string_view key) {
  return const_cast<ConfigNode*>(std::as_const(*this).find(key));
}

void assign(ConfigNode& table, const std::string& key, ConfigNode value) {
  remove(table, key);
  const ConfigPosition place = value.place;
  table.entries.push_back({key, place, std::move(value)});
}

void remove(ConfigNode& table, std::string_view key) {
  std::erase_if(table.entries, [&](const ConfigEntry& entry) { return entry.key == key; });
}

std::string to_text(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::text: return fmt::format("\"{}\"", shown(node.text));
    case ConfigNode::Kind::integer: return fmt::format("{}", node.integer);
    case ConfigNode::Kind::real: return fmt::format("{}", node.real);
    case ConfigNode::Kind::boolean: return node.integer != 0 ? "true" : "false";
    case ConfigNode::Kind::list: return "a list";
    case ConfigNode::Kind::table: return "a table";
    case ConfigNode::Kind::other: break;
  }
  return node.text;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  const bool cut = text.size() > kLongest;
  std::size_t end = std::min(text.size(), kLongest);
  const auto continues = [&](std::size_t i) { return (text[i] & 0xC0) == 0x80; };
  while (cut && end > 0 && continues(end)) --end;  // not inside a UTF-8 character
  std::string result{text.substr(0, end)};
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return cut ? result + "..." : result;
}

}  // namespace longhaul::scenario
