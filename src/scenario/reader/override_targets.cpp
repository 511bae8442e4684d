#include "scenario/reader/override_targets.hpp"

#include <algorithm>
#include <functional>

#include "base/suggest.hpp"
#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

using Kind = ConfigNode::Kind;

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

/// Whether a [[link]] is the one between a and b (in either order), or from a to b.
bool links(const ConfigNode& entry, std::string_view a, std::string_view b) {
  const ConfigNode* between = entry.find("between");
  if (between == nullptr) return is_text(entry.find("from"), a) && is_text(entry.find("to"), b);
  if (between->items.size() != 2) return false;
  const ConfigNode* first = &between->items[0];
  const ConfigNode* second = &between->items[1];
  return (is_text(first, a) && is_text(second, b)) || (is_text(first, b) && is_text(second, a));
}

/// Whether NAME of section.NAME.key means this entry.
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

/// Whether links may follow from regions, without a [[link]].
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
ConfigNode empty_link_of_all(const Place& place) {
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
                            const Place& place) {
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
void make_regions_addressable(ConfigNode& root, const OverridePath& path, const Place& place) {
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

}  // namespace

bool means_all(const OverridePath& path) {
  return path.size() == 2 || (path[0] == "link" && (path[1] == "jitter" || path[1] == "loss"));
}

std::vector<ConfigNode*> addressed(ConfigNode& root, const OverridePath& path, const Place& place) {
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

}  // namespace longhaul::scenario
