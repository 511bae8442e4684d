#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "scenario/files/link_trace.hpp"
#include "scenario/reader/link_values.hpp"
#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

using Pair = std::pair<DatacenterId, DatacenterId>;

/// Links of more datacenters are sorted by their ends, where Scenario::link() looks for them.
constexpr std::size_t kMostUnsorted = 64;

/// The ordered pairs that an entry links; none for between = "all".
std::vector<Pair> read_pairs(const Section& section, const Scenario& scenario) {
  const auto between = section.find("between");
  const auto from = section.find("from");
  const auto to = section.find("to");
  if (between && (from || to))
    fail_at(between->node->place,
            "link.between and link.{} are both given (they set the same). "
            "Keep one.",
            from ? "from" : "to");
  if (!between && !(from && to))
    fail_at(section.place(),
            "the link has no ends (it needs between, or from and to). Add between "
            "= [\"a\", \"b\"].");
  if (!between) return {{datacenter_named(*from, scenario), datacenter_named(*to, scenario)}};
  if (between->node->kind == ConfigNode::Kind::text && between->node->text == "all") return {};
  const auto ends = elements(*between);
  if (ends.size() != 2)
    fail_at(between->node->place,
            "link.between names {} datacenters (a link has two ends). Write "
            "between = [\"a\", \"b\"], or between = \"all\".",
            ends.size());
  const DatacenterId a = datacenter_named(ends[0], scenario);
  const DatacenterId b = datacenter_named(ends[1], scenario);
  if (a == b) return {{a, a}};
  return {{a, b}, {b, a}};
}

class LinkReader {
public:
  LinkReader(Scenario& scenario, const SiteRegions& regions, TraceStore& traces, bool message_known)
      : scenario_{scenario},
        regions_{regions},
        traces_{traces},
        message_known_{message_known},
        count_{scenario.datacenters.size()},
        linked_(count_ * count_) {}

  void read(const ConfigNode& table) {
    const Section section{table, "link", link_keys()};
    const auto pairs = read_pairs(section, scenario_);
    if (pairs.empty()) return keep_for_all(section);
    for (const Pair& pair : pairs) {
      if (linked_[slot(pair)])
        fail_at(section.place(),
                "the link from {} to {} is given twice (one direction has one "
                "link). Keep one.",
                name(pair.first), name(pair.second));
      add(pair, section);
    }
  }

  /// Gives every pair of datacenters without a link the one of between = "all", or what was
  /// measured between their regions. Of many datacenters links come by their ends.
  void finish() {
    std::vector<Link> given;
    const bool by_ends = count_ > kMostUnsorted;
    if (by_ends) given.swap(scenario_.links);
    std::ranges::sort(given, {}, [](const Link& link) { return std::pair{link.from, link.to}; });
    if (of_all_ || regions_.any()) scenario_.links.reserve(count_ * count_);
    auto next = given.begin();
    for (std::size_t i = 0; i < linked_.size(); ++i) {
      const Pair pair{static_cast<DatacenterId>(i / count_), static_cast<DatacenterId>(i % count_)};
      if (linked_[i]) {
        if (by_ends) scenario_.links.push_back(std::move(*next++));
        continue;
      }
      if (pair.first == pair.second) continue;
      if (const Link* const link = of_rest(pair)) keep(pair, *link);
    }
  }

private:
  void keep_for_all(const Section& section) {
    if (of_all_)
      fail_at(section.place(),
              "a second link is between \"all\" (one serves every pair that no "
              "other names). Keep one.");
    of_all_ = section;
    if (!regions_.any()) (void)read_whole(section, {});
  }

  /// What no entry names: the same for all pairs of two regions; nullptr: no link.
  [[nodiscard]] const Link* of_rest(const Pair& pair) {
    const auto [known, is_new] = rest_.try_emplace(regions_.names(pair.first, pair.second));
    if (!is_new) return known->second ? &*known->second : nullptr;
    if (of_all_)
      known->second = of_entry(pair, *of_all_);
    else if (const auto measured = regions_.link(pair.first, pair.second))
      known->second = measured_link(*measured);
    return known->second ? &*known->second : nullptr;
  }

  void add(const Pair& pair, const Section& section) { keep(pair, of_entry(pair, section)); }

  /// The link of an entry: its own values, the others as measured between the pair's regions.
  Link of_entry(const Pair& pair, const Section& section) {
    Link link;
    if (pair.first != pair.second && regions_.both(pair.first, pair.second) &&
        !gives_latency_and_rate(section)) {
      const auto measured = regions_.link(pair.first, pair.second);
      if (!measured) regions_.refuse_pair(section.place(), pair.first, pair.second);
      link = measured_link(*measured);
    }
    return read_whole(section, link);
  }

  Link read_whole(const Section& section, const Link& before) {
    Link link = read_link(section, before, scenario_, message_known_);
    read_weather(section, traces_, scenario_, message_known_, link);
    return link;
  }

  Link measured_link(const RegionPair& pair) const {
    if (!message_known_ && scenario_.parallel.stages > 1) regions_.refuse_unknown_message();
    Link link;
    link.latency = scaled(pair.round_trip, 0.5);
    link.bandwidth = pair.throughput;
    return link;
  }

  void keep(const Pair& pair, Link link) {
    link.from = pair.first;
    link.to = pair.second;
    linked_[slot(pair)] = true;
    scenario_.links.push_back(std::move(link));
  }

  [[nodiscard]] std::size_t slot(const Pair& pair) const {
    return index(pair.first) * count_ + index(pair.second);
  }
  [[nodiscard]] const std::string& name(DatacenterId id) const {
    return scenario_.datacenters[index(id)].name;
  }

  Scenario& scenario_;
  const SiteRegions& regions_;
  TraceStore& traces_;
  bool message_known_;
  std::size_t count_;
  std::vector<bool> linked_;
  std::map<std::pair<std::string_view, std::string_view>, std::optional<Link>> rest_;
  std::optional<Section> of_all_;
};

}  // namespace

void read_network(const ConfigNode& root, Scenario& scenario, bool message_known) {
  const SiteRegions regions{root, scenario};
  TraceStore traces{root};
  LinkReader links{scenario, regions, traces, message_known};
  for (const ConfigNode* table : tables_of(root, "link")) links.read(*table);
  links.finish();
  scenario.text += traces.held_text() + regions.held_text();
  for (const ConfigNode* table : tables_of(root, "node"))
    read_node(*table, scenario, message_known);
}

}  // namespace longhaul::scenario
