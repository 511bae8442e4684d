#include <algorithm>
#include <charconv>

#include "base/suggest.hpp"
#include "scenario/reader/override_targets.hpp"
#include "scenario/reader/sections.hpp"
#include "scenario/text/toml_text.hpp"

namespace longhaul::scenario {
namespace {

using Kind = ConfigNode::Kind;

OverridePath split(std::string path, const Place& place) {
  constexpr std::size_t kMostParts = 8;
  std::erase(path, ' ');
  OverridePath parts;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t dot = std::min(path.find('.', at), path.size());
    parts.push_back(path.substr(at, dot - at));
    at = dot + 1;
    if (parts.back().empty() || parts.size() > kMostParts)
      fail_at(place,
              "\"{}\" is no path (its parts are keys with dots between them). Write "
              "--set SECTION.KEY=VALUE.",
              shown(path));
  }
  return parts;
}

/// Keys that say the same in another way: setting one replaces the others.
void remove_rivals(ConfigNode& table, const std::string& key) {
  using Keys = std::vector<std::string>;
  static const Keys kLatency{"latency", "rtt", "latency_ratio"};
  static const Keys kRate{"bandwidth", "transfer_ratio"};
  static const Keys kConnections{"connections", "window", "node_cap"};
  const auto is_one_of = [&](const Keys& keys) {
    return std::ranges::find(keys, key) != keys.end();
  };
  const auto remove_all = [&](const Keys& keys) {
    for (const std::string& rival : keys) remove(table, rival);
  };
  if (key == "preset" || is_one_of(kLatency)) remove_all(kLatency);
  if (key == "preset" || key == "connections" || is_one_of(kRate)) remove_all(kRate);
  if (key == "preset" || is_one_of(kRate)) remove_all(kConnections);
}

/// The element of a list that `part` counts, from 0.
ConfigNode& element(ConfigNode& list, const std::string& part, const Place& place) {
  std::size_t i = list.items.size();
  std::from_chars(part.data(), part.data() + part.size(), i);
  if (i >= list.items.size() || std::to_string(i) != part)
    fail_at(place,
            "\"{}\" is no element of the list (it has {}, counted from 0). Correct the path.",
            shown(part), list.items.size());
  return list.items[i];
}

/// Sets the value at the end of `path` below `node`; adds tables on the way.
void set(ConfigNode& node, std::span<const std::string> path, const ConfigNode& value) {
  const std::string& key = path.front();
  if (node.kind == Kind::list) {
    ConfigNode& item = element(node, key, value.place);
    if (path.size() > 1) return set(item, path.subspan(1), value);
    item = value;
    return;
  }
  if (node.kind != Kind::table)
    fail_at(value.place, "{} has no key \"{}\" (it is no table). Correct the path.", to_text(node),
            shown(key));
  if (path.size() == 1) return assign(node, key, value);
  if (node.find(key) == nullptr) {
    ConfigNode table;
    table.place = value.place;
    assign(node, key, table);
  }
  set(*node.find(key), path.subspan(1), value);
}

bool is_list_section(const std::string& name) {
  return name == "datacenter" || name == "link" || name == "node";
}

void refuse_control_characters(const std::string& option, const Place& place) {
  if (std::ranges::any_of(option, [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    fail_at(place,
            "the override holds a control character (it is kept with the trace as one "
            "line). Remove it.");
}

/// TOML where it is; otherwise a number as people type it (.5), otherwise a text (40ms).
ConfigNode read_value(const std::string& text, const Place& place) {
  if (auto value = parse_toml_value(text, place)) return *std::move(value);
  ConfigNode value;
  value.place = place;
  value.text = text;
  const char* const end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value.real);
  const bool is_number = status == std::errc{} && rest == end;
  value.kind = is_number ? Kind::real : Kind::text;
  return value;
}

}  // namespace

void apply_override(ConfigNode& root, const std::string& option) {
  const Place place{std::make_shared<const std::string>("--set " + shown(option)), 0, 0};
  refuse_control_characters(option, place);
  const std::size_t equals = option.find('=');
  if (equals == std::string::npos)
    fail_at(place, "there is no \"=\" (an override is PATH=VALUE). Write it as run.seed=3, say.");
  const OverridePath path = split(option.substr(0, equals), place);
  const std::string text = option.substr(equals + 1);
  const ConfigNode value = read_value(text, place);
  if (path.size() == 1)
    fail_at(place, "\"{}\" is no value (a section holds keys). Write --set {}.KEY=VALUE.",
            shown(path[0]), shown(path[0]));
  if (!is_list_section(path[0])) return set(root, path, value);
  const std::size_t skipped = means_all(path) ? 1 : 2;
  for (ConfigNode* entry : addressed(root, path, place)) {
    if (path[0] == "link") remove_rivals(*entry, path[skipped]);
    set(*entry, std::span{path}.subspan(skipped), value);
  }
}

}  // namespace longhaul::scenario
