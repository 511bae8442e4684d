#include <algorithm>
#include <cmath>

#include "base/suggest.hpp"
#include "scenario/presets.hpp"
#include "scenario/sections.hpp"

namespace longhaul {
namespace {

DatacenterId datacenter_named(const Field& field, const Scenario& scenario) {
  const std::string name = read_text(field);
  std::vector<std::string> names;
  for (const Datacenter& datacenter : scenario.datacenters) names.push_back(datacenter.name);
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    fail_at(field.node->place, "{} = \"{}\" is no datacenter (no [[datacenter]] has that name). {}",
            field.path, shown(name), suggestion(name, names));
  return DatacenterId{static_cast<int>(found - names.begin())};
}

/// The one of `keys` that is given; two of them contradict each other.
std::optional<Field> one_of(const Section& section, const std::vector<std::string>& keys) {
  std::optional<Field> found;
  for (const std::string& key : keys) {
    auto field = section.find(key);
    if (!field) continue;
    if (found)
      fail_at(field->node->place, "{} and {} are both given (they set the same). Keep one.",
              found->path, field->path);
    found = std::move(field);
  }
  return found;
}

/// `ratio` times the largest forward time.
Duration read_ratio(const Field& field, const Scenario& scenario) {
  constexpr double kMostRatio = 1e9;
  constexpr double kLongest = 0x1p60;
  const double ratio = read_number(field, 0, kMostRatio);
  const Duration unit = scenario.largest_forward();
  if (ratio * static_cast<double>(unit.count()) > kLongest)
    fail_at(field.node->place, "{} = {} is too long (36 years is the limit). Use less.", field.path,
            ratio);
  return scaled(unit, ratio);
}

void read_latency(const Section& section, const Scenario& scenario, Link& link) {
  const auto field = one_of(section, {"latency", "rtt", "latency_ratio"});
  if (!field) return;
  if (field->path == "link.latency") link.latency = read_duration(*field);
  if (field->path == "link.rtt") link.latency = scaled(read_duration(*field), 0.5);
  if (field->path == "link.latency_ratio") link.latency = read_ratio(*field, scenario);
}

void read_rate(const Section& section, const Scenario& scenario, Link& link) {
  const auto field = one_of(section, {"bandwidth", "transfer_ratio"});
  if (!field) return;
  if (field->path == "link.bandwidth") {
    link.bandwidth = read_bandwidth(*field);
    return;
  }
  const Duration transfer = read_ratio(*field, scenario);
  const Bytes message = *std::ranges::max_element(scenario.costs.message);
  link.bandwidth = transfer == Duration::zero()
                       ? Bandwidth::unlimited()
                       : Bandwidth{static_cast<double>(message.count()) * 8e9 /
                                   static_cast<double>(transfer.count())};
}

void read_preset(const Section& section, Link& link) {
  const auto field = section.find("preset");
  if (!field) return;
  std::vector<std::string> names;
  for (const LinkPreset& preset : link_presets()) names.push_back(preset.name);
  const LinkPreset& preset = link_presets()[read_choice(*field, names)];
  link.latency = preset.latency;
  link.bandwidth = preset.bandwidth;
}

/// A limited rate takes a time only with a size.
void refuse_rate_without_size(const Field& field, const Scenario& scenario, bool message_known) {
  if (!message_known && scenario.parallel.stages > 1)
    fail_at(field.node->place,
            "{} needs costs.message (without a model nothing tells the size of a "
            "message). Add costs.message.",
            field.path);
}

Link read_properties(const Section& section, const Scenario& scenario, bool message_known) {
  Link link;
  read_preset(section, link);
  read_latency(section, scenario, link);
  read_rate(section, scenario, link);
  if (const auto field = section.find("sharing"))
    link.sharing = static_cast<Sharing>(read_choice(*field, {"pair", "datacenter"}));
  if (const auto field = section.find("jitter")) link.jitter = read_jitter(*field);
  for (const char* key : {"bandwidth", "preset"}) {
    const auto field = section.find(key);
    if (field && !link.bandwidth.is_unlimited() && !section.find("transfer_ratio"))
      refuse_rate_without_size(*field, scenario, message_known);
  }
  return link;
}

using Pair = std::pair<DatacenterId, DatacenterId>;

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
  LinkReader(Scenario& scenario, bool message_known)
      : scenario_{scenario},
        message_known_{message_known},
        count_{scenario.datacenters.size()},
        linked_(count_ * count_) {}

  void read(const ConfigNode& table) {
    const Section section{table,
                          "link",
                          {"between", "from", "to", "latency", "rtt", "latency_ratio", "bandwidth",
                           "transfer_ratio", "sharing", "preset", "jitter"}};
    const auto pairs = read_pairs(section, scenario_);
    const Link link = read_properties(section, scenario_, message_known_);
    if (pairs.empty()) return keep_for_all(section, link);
    for (const Pair& pair : pairs) {
      if (linked_[slot(pair)])
        fail_at(section.place(),
                "the link from {} to {} is given twice (one direction has one "
                "link). Keep one.",
                name(pair.first), name(pair.second));
      add(pair, link);
    }
  }

  /// Gives every pair of datacenters without a link the one of between = "all".
  void finish() {
    if (!of_all_) return;
    for (std::size_t i = 0; i < linked_.size(); ++i) {
      const Pair pair{static_cast<DatacenterId>(i / count_), static_cast<DatacenterId>(i % count_)};
      if (!linked_[i] && pair.first != pair.second) add(pair, *of_all_);
    }
  }

private:
  void keep_for_all(const Section& section, const Link& link) {
    if (of_all_)
      fail_at(section.place(),
              "a second link is between \"all\" (one serves every pair that no "
              "other names). Keep one.");
    of_all_ = link;
  }

  void add(const Pair& pair, Link link) {
    link.from = pair.first;
    link.to = pair.second;
    linked_[slot(pair)] = true;
    scenario_.links.push_back(link);
  }

  [[nodiscard]] std::size_t slot(const Pair& pair) const {
    return index(pair.first) * count_ + index(pair.second);
  }
  [[nodiscard]] const std::string& name(DatacenterId id) const {
    return scenario_.datacenters[index(id)].name;
  }

  Scenario& scenario_;
  bool message_known_;
  std::size_t count_;
  std::vector<bool> linked_;
  std::optional<Link> of_all_;
};

void read_node(const ConfigNode& table, Scenario& scenario, bool message_known) {
  const Section section{table, "node", {"datacenter", "gpus", "egress", "ingress"}};
  const Field where = section.require("datacenter", "interfaces belong to nodes of one");
  NodeInterfaces node;
  node.datacenter = datacenter_named(where, scenario);
  if (scenario.interfaces(node.datacenter) != nullptr)
    fail_at(where.node->place,
            "{} = {} has a [[node]] already (all nodes of a datacenter are "
            "alike). Keep one.",
            where.path, describe(*where.node));
  if (const auto field = section.find("gpus"))
    node.gpus = static_cast<int>(read_integer(*field, 1, 1 << 20));
  const auto read_side = [&](const char* key, Bandwidth& rate) {
    const auto field = section.find(key);
    if (!field) return;
    rate = read_bandwidth(*field);
    if (!rate.is_unlimited()) refuse_rate_without_size(*field, scenario, message_known);
  };
  read_side("egress", node.egress);
  read_side("ingress", node.ingress);
  scenario.nodes.push_back(node);
}

}  // namespace

void read_network(const ConfigNode& root, Scenario& scenario, bool message_known) {
  LinkReader links{scenario, message_known};
  for (const ConfigNode* table : tables_of(root, "link")) links.read(*table);
  links.finish();
  for (const ConfigNode* table : tables_of(root, "node"))
    read_node(*table, scenario, message_known);
}

}  // namespace longhaul
