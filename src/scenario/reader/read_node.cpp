#include <algorithm>

#include "base/suggest.hpp"
#include "scenario/presets.hpp"
#include "scenario/reader/link_values.hpp"

namespace longhaul::scenario {
namespace {

/// Ranks of a node where [[node]] leaves them out: its GPUs, a tensor-parallel group being one
/// rank.
int ranks_of_node(const Datacenter& datacenter, const std::optional<Model>& model) {
  if (!datacenter.gpus_per_node) return 1;
  return std::max(1, *datacenter.gpus_per_node / (model ? model->tensor_parallel : 1));
}

/// A link of the datacenter to itself says what these keys say.
void refuse_second_latency(const Section& section, const NodeInterfaces& node,
                           const Scenario& scenario) {
  if (scenario.link(node.datacenter, node.datacenter) == nullptr) return;
  const std::string& name = scenario.datacenters[index(node.datacenter)].name;
  for (const char* key : {"device", "device_latency", "internal_latency"})
    if (const auto field = section.find(key))
      fail_at(field->node->place,
              "{} and [[link]] between = [\"{}\", \"{}\"] are both given (they set the same "
              "messages' times). Keep one.",
              field->path, name, name);
}

void take_node_preset(const Field& field, NodeInterfaces& node) {
  std::vector<std::string> names;
  for (const NodePreset& each : node_presets()) names.push_back(each.name);
  const NodePreset& preset = node_presets()[read_choice(field, names)];
  node.gpus = preset.gpus;
  node.device = preset.device;
  node.internal = preset.internal;
}

}  // namespace

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

void read_node(const ConfigNode& table, Scenario& scenario, bool message_known) {
  const Section section{table,
                        "node",
                        {"datacenter", "preset", "gpus", "egress", "ingress", "internal",
                         "internal_latency", "device", "device_latency"}};
  const Field where = section.require("datacenter", "interfaces belong to nodes of one");
  NodeInterfaces node;
  node.datacenter = datacenter_named(where, scenario);
  if (scenario.interfaces(node.datacenter) != nullptr)
    fail_at(where.node->place,
            "{} = {} has a [[node]] already (all nodes of a datacenter are "
            "alike). Keep one.",
            where.path, to_text(*where.node));
  node.gpus = ranks_of_node(scenario.datacenters[index(node.datacenter)], scenario.model);
  if (const auto field = section.find("preset")) take_node_preset(*field, node);
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
  read_side("internal", node.internal);
  read_side("device", node.device);
  const auto read_latency = [&](const char* key, const char* rate, bool limited,
                                Duration& latency) {
    const auto field = section.find(key);
    if (!field) return;
    latency = read_duration(*field);
    if (!limited && latency > Duration::zero())
      fail_at(field->node->place,
              "{} = {} has no rate beside it (a level without one takes no time). Give node.{} "
              "as well.",
              field->path, to_text(*field->node), rate);
  };
  read_latency("internal_latency", "internal", !node.internal.is_unlimited(),
               node.internal_latency);
  read_latency("device_latency", "device", !node.device.is_unlimited(), node.device_latency);
  refuse_second_latency(section, node, scenario);
  scenario.nodes.push_back(node);
}

}  // namespace longhaul::scenario
