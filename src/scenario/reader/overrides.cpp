#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <vector>

#include "base/suggest.hpp"
#include "scenario/reader/sections.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::scenario {
namespace {

using Kind = ConfigNode::Kind;

/// The keys of --set section.NAME.key=VALUE, section first.
using OverridePath = std::vector<std::string>;

/// Does the path mean every entry of its section? Keys that are tables look like names; no link has
/// theirs, since names of links hold a dash.
bool means_all(const OverridePath& path) {
  return path.size() == 2 || (path[0] == "link" && (path[1] == "jitter" || path[1] == "loss"));
}

bool is_text(const ConfigNode* node, std::string_view text) {
  return node != nullptr && node->kind == Kind::text && node->text == text;
}

/// Both ends of NAME = "a-b", where either name may hold dashes: every split is tried.
bool for_ends(const std::string& name,
              const std::function<bool(std::string_view, std::string_view)>& found) {
  for (std::size_t dash = name.find('-'); dash != std::string::npos;
       dash = name.find('-', dash + 1))
    if (found(std::string_view{name}.substr(0, dash), std::string_view{name}.substr(dash + 1)))
      return true;
  return false;
}

/// Is a [[link]] the one between a and b (in either order), or from a to b?
bool links(const ConfigNode& entry, std::string_view a, std::string_view b) {
  const ConfigNode* between = entry.find("between");
  if (between == nullptr) return is_text(entry.find("from"), a) && is_text(entry.find("to"), b);
  if (between->items.size() != 2) return false;
  const ConfigNode* first = &between->items[0];
  const ConfigNode* second = &between->items[1];
  return (is_text(first, a) && is_text(second, b)) || (is_text(first, b) && is_text(second, a));
}

/// Does NAME of section.NAME.key mean this entry?
bool is_called(const std::string& section, const ConfigNode& entry, const std::string& name) {
  if (section == "datacenter") return is_text(entry.find("name"), name);
  if (section == "node") return is_text(entry.find("datacenter"), name);
  if (name == "all") return is_text(entry.find("between"), "all");
  return for_ends(name, [&](auto a, auto b) { return links(entry, a, b); });
}

bool has_datacenter(const ConfigNode& root, std::string_view name) {
  return std::ranges::any_of(tables_of(root, "datacenter"), [&](const ConfigNode* table) {
    return is_text(table->find("name"), name);
  });
}

/// May links follow from regions, without a [[link]]?
bool has_regions(const ConfigNode& root) {
  return std::ranges::any_of(tables_of(root, "datacenter"), [](const ConfigNode* table) {
    return table->find("region") != nullptr;
  });
}

/// [[link]] between = "all"; nullptr where there is none.
ConfigNode* link_of_all(ConfigNode& list) {
  const auto all = std::ranges::find_if(
      list.items, [](const ConfigNode& entry) { return is_text(entry.find("between"), "all"); });
  return all == list.items.end() ? nullptr : &*all;
}

/// An entry that leaves every pair what its regions give.
ConfigNode empty_link_of_all(const ConfigPosition& place) {
  ConfigNode all, entry;
  all.kind = Kind::text;
  all.text = "all";
  all.place = entry.place = place;
  assign(entry, "between", all);
  return entry;
}

/// A link that only between = "all" or the regions give gets its own entry; nullptr where neither
/// does.
ConfigNode* link_out_of_all(const ConfigNode& root, ConfigNode& list, const std::string& name,
                            const ConfigPosition& place) {
  const ConfigNode* const all = link_of_all(list);
  if (all == nullptr && !has_regions(root)) return nullptr;
  ConfigNode own = all == nullptr ? empty_link_of_all(place) : *all;
  const bool found = for_ends(name, [&](std::string_view a, std::string_view b) {
    if (a == b || !has_datacenter(root, a) || !has_datacenter(root, b)) return false;
    ConfigNode& ends = *own.find("between");
    ConfigNode end = ends;
    ends.kind = Kind::list;
    for (const std::string_view one : {a, b}) {
      end.text = one;
      ends.items.push_back(end);
    }
    return true;
  });
  if (!found) return nullptr;
  list.items.push_back(std::move(own));
  return &list.items.back();
}

std::string names_of(const std::string& section) {
  if (section == "link") return "link.WEST-EAST.key, link.all.key or link.key for all";
  return fmt::format("{0}.NAME.key, or {0}.key for all", section);
}

/// Regions give links without a [[link]]: link.key means these too.
void make_regions_addressable(ConfigNode& root, const OverridePath& path,
                              const ConfigPosition& place) {
  if (root.find("link") == nullptr) {
    ConfigNode none;
    none.kind = Kind::list;
    none.place = place;
    assign(root, "link", none);
  }
  ConfigNode& list = *root.find("link");
  if (list.kind == Kind::list && means_all(path) && link_of_all(list) == nullptr)
    list.items.push_back(empty_link_of_all(place));
}

/// The entries of [[section]] (datacenter, link, node) that section.key (all) or section.NAME.key
/// mean; a link that only between = "all" or regions give gets an entry of its own. Throws Error at
/// `place` that says how entries are called.
std::vector<ConfigNode*> addressed(ConfigNode& root, const OverridePath& path,
                                   const ConfigPosition& place) {
  const std::string& section = path[0];
  if (section == "link" && has_regions(root)) make_regions_addressable(root, path, place);
  const bool may_be_empty = section == "link" && has_regions(root);
  if (tables_of(root, section).empty() && !may_be_empty)
    fail_at(place, "there is no [[{}]] to set (the file has none). Add one to the file.", section);
  ConfigNode& list = *root.find(section);
  std::vector<ConfigNode*> entries;
  for (ConfigNode& entry : list.items) {
    if (means_all(path) || is_called(section, entry, path[1])) entries.push_back(&entry);
  }
  if (entries.empty() && section == "link") {
    if (ConfigNode* own = link_out_of_all(root, list, path[1], place)) entries.push_back(own);
  }
  if (entries.empty())
    fail_at(place, "no [[{}]] is called \"{}\" (the path is {}). Correct the name.", section,
            shown(path[1]), names_of(section));
  return entries;
}

OverridePath split(std::string path, const ConfigPosition& place) {
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
ConfigNode& element(ConfigNode& list, const std::string& part, const ConfigPosition& place) {
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

void refuse_control_characters(const std::string& option, const ConfigPosition& place) {
  if (std::ranges::any_of(option, [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    fail_at(place,
            "the override holds a control character (it is kept with the trace as one "
            "line). Remove it.");
}

/// TOML where it is; otherwise a number as people type it (.5), otherwise a text (40ms).
ConfigNode read_value(const std::string& text, const ConfigPosition& place) {
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
  const ConfigPosition place{std::make_shared<const std::string>("--set " + shown(option)), 0, 0};
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
