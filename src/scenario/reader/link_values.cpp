#include "scenario/reader/link_values.hpp"

#include <algorithm>

#include "base/suggest.hpp"
#include "base/unit_text.hpp"
#include "scenario/presets.hpp"

namespace longhaul::scenario {
namespace {

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
  constexpr double kLongestRatio = 0x1p60;
  const double ratio = read_number(field, 0, kMostRatio);
  const Duration unit = scenario.largest_forward();
  if (ratio * static_cast<double>(unit.count()) > kLongestRatio)
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

/// connections, window and node_cap of a link with this latency.
Connections read_connections(const Section& section, const Field& count, Duration latency) {
  std::optional<Bytes> window;
  if (const auto field = section.find("window")) {
    window = read_bytes(*field);
    if (*window == Bytes{})
      fail_at(field->node->place, "{} is empty (nothing would be in flight). Use more.",
              field->path);
  }
  Connections connections;
  connections.cap = kNodeCap;
  if (const auto field = section.find("node_cap")) connections.cap = read_bandwidth(*field);
  connections.each = connection_rate(latency, window);
  if (count.node->kind != ConfigNode::Kind::text) {
    connections.count = static_cast<int>(read_integer(count, 1, kMostConnections));
    return connections;
  }
  (void)read_choice(count, {"auto"});
  const auto enough = connections_to_cap(connections.each, connections.cap);
  if (!enough)
    fail_at(count.node->place,
            "{} = \"auto\" finds no number of connections ({} each, the cap is {}; {} is the "
            "limit). Give a number, or another node_cap.",
            count.path, longhaul::to_text(connections.each), longhaul::to_text(connections.cap),
            kMostConnections);
  connections.count = *enough;
  return connections;
}

/// window and node_cap say something of connections; a node_cap also of a rate that was measured.
void refuse_idle_connection_keys(const Section& section, const std::optional<Field>& rate,
                                 const Link& link) {
  const bool measured = !rate && !section.find("preset") && !link.bandwidth.is_unlimited();
  for (const char* key : {"window", "node_cap"}) {
    const auto field = section.find(key);
    if (field && (!measured || key == std::string_view{"window"}))
      fail_at(field->node->place,
              "{} has no effect (it says how fast connections are, and none are given). Add "
              "connections = \"auto\", or remove it.",
              field->path);
  }
}

/// A rate that was measured between regions and that no key replaces.
void cap_measured_rate(const Section& section, Link& link) {
  if (const auto field = section.find("node_cap"))
    link.bandwidth = std::min(link.bandwidth, read_bandwidth(*field));
}

void read_rate(const Section& section, const Scenario& scenario, Link& link) {
  const auto field = one_of(section, {"bandwidth", "transfer_ratio", "connections"});
  if (!field || field->path != "link.connections")
    refuse_idle_connection_keys(section, field, link);
  if (!field) return cap_measured_rate(section, link);
  if (field->path == "link.connections") {
    link.connections = read_connections(section, *field, link.latency);
    link.bandwidth = together(*link.connections);
    return;
  }
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

}  // namespace

void refuse_rate_without_size(const Field& field, const Scenario& scenario, bool message_known) {
  if (!message_known && scenario.parallel.stages > 1)
    fail_at(field.node->place,
            "{} needs costs.message (without a model nothing tells the size of a "
            "message). Add costs.message.",
            field.path);
}

const std::vector<std::string>& link_keys() {
  static const std::vector<std::string> keys{
      "between",   "from",           "to",          "latency", "rtt",          "latency_ratio",
      "bandwidth", "transfer_ratio", "connections", "window",  "node_cap",     "aggregate",
      "sharing",   "preset",         "jitter",      "trace",   "trace_repeat", "loss",
      "outage"};
  return keys;
}

bool gives_latency_and_rate(const Section& section) {
  const auto any_of = [&](const std::vector<std::string>& keys) {
    return std::ranges::any_of(keys,
                               [&](const auto& key) { return section.find(key).has_value(); });
  };
  return section.find("preset") || (any_of({"latency", "rtt", "latency_ratio"}) &&
                                    any_of({"bandwidth", "transfer_ratio", "connections"}));
}

Link read_link(const Section& section, Link link, const Scenario& scenario, bool message_known) {
  read_preset(section, link);
  read_latency(section, scenario, link);
  read_rate(section, scenario, link);
  if (const auto field = section.find("aggregate")) link.aggregate = read_bandwidth(*field);
  if (const auto field = section.find("sharing")) link.sharing = read_choice<Sharing>(*field);
  if (const auto field = section.find("jitter")) link.jitter = read_jitter(*field);
  for (const char* key : {"bandwidth", "connections", "aggregate", "preset"}) {
    const auto field = section.find(key);
    const bool limited = !link.bandwidth.is_unlimited() || !link.aggregate.is_unlimited();
    if (field && limited && !section.find("transfer_ratio"))
      refuse_rate_without_size(*field, scenario, message_known);
  }
  return link;
}

}  // namespace longhaul::scenario
