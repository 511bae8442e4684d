#include "scenario/reader/network_file.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/suggest.hpp"
#include "base/vocabulary.hpp"
#include "scenario/files/embedded_files.hpp"

namespace longhaul::scenario {
namespace {

constexpr MeasuredKind kLevelsKind{"network.file", "levels", "levels",
                                   "the file of measured levels",
                                   "what bench_collectives --fit wrote"};
constexpr std::string_view kNoLevels = "this is no file of measured levels without it";

/// Latency and rate of one level, as the file has them.
struct MeasuredLevel {
  NetworkLevel level{};
  std::string kind;
  const ConfigNode* latency = nullptr;
  const ConfigNode* rate = nullptr;
};

MeasuredLevel read_level(const ConfigNode& table) {
  const Section section{table,
                        "level",
                        {"level", "kind", "algorithm", "members", "latency", "latency_interval",
                         "rate", "rate_interval", "fitted_bytes", "left_out_bytes", "error"}};
  const Field latency = section.require("latency", kNoLevels);
  const Field rate = section.require("rate", kNoLevels);
  (void)read_duration(latency);
  (void)read_bandwidth(rate);
  return {read_choice<NetworkLevel>(section.require("level", kNoLevels)),
          read_text(section.require("kind", kNoLevels)), latency.node, rate.node};
}

/// The levels of the wanted kind; of the file's first where none is.
std::vector<MeasuredLevel> read_levels(const ConfigNode& tree, const std::optional<Field>& wanted) {
  (void)Section{tree, "", {"cluster", "level", "measured"}};
  std::vector<MeasuredLevel> all;
  std::vector<std::string> kinds;
  for (const ConfigNode* table : tables_of(tree, "level")) {
    all.push_back(read_level(*table));
    if (std::ranges::find(kinds, all.back().kind) == kinds.end()) kinds.push_back(all.back().kind);
  }
  if (all.empty()) fail_at(tree.place, "there is no [[level]] ({}). Name another file.", kNoLevels);
  const std::string kind = wanted ? read_text(*wanted) : kinds.front();
  if (std::ranges::find(kinds, kind) == kinds.end())
    fail_at(wanted->node->place, "{} = \"{}\" was not measured there. {}", wanted->path,
            shown(kind), suggestion(kind, kinds));
  std::erase_if(all, [&](const MeasuredLevel& level) { return level.kind != kind; });
  return all;
}

/// Sets a key unless the table has it, or one of those that say the same.
void give(ConfigNode& table, const char* key, const ConfigNode& value,
          std::initializer_list<const char*> same) {
  const bool given =
      std::ranges::any_of(same, [&](const char* other) { return table.find(other) != nullptr; });
  if (!given && table.find(key) == nullptr) assign(table, key, value);
}

template <typename Give>
void for_each_table(ConfigNode& root, const char* name, const Give& each) {
  ConfigNode* const list = root.find(name);
  if (list == nullptr || list->kind != ConfigNode::Kind::list) return;
  for (ConfigNode& table : list->items)
    if (table.kind == ConfigNode::Kind::table) each(table);
}

void give_level(ConfigNode& root, const MeasuredLevel& level) {
  switch (level.level) {
    case NetworkLevel::node:
      return for_each_table(root, "node", [&](ConfigNode& node) {
        give(node, "device", *level.rate, {});
        give(node, "device_latency", *level.latency, {});
      });
    case NetworkLevel::datacenter:
      return for_each_table(root, "node", [&](ConfigNode& node) {
        give(node, "internal", *level.rate, {});
        give(node, "internal_latency", *level.latency, {});
      });
    case NetworkLevel::wan:
      return for_each_table(root, "link", [&](ConfigNode& link) {
        give(link, "bandwidth", *level.rate, {"transfer_ratio", "connections", "preset", "trace"});
        give(link, "latency", *level.latency, {"rtt", "latency_ratio", "preset", "trace"});
      });
  }
}

}  // namespace

NetworkFile::NetworkFile(ConfigNode tree, std::string held_text)
    : tree_{std::move(tree)}, held_text_{std::move(held_text)} {}

std::optional<NetworkFile> NetworkFile::include(ConfigNode& root,
                                                std::span<const std::string> overrides) {
  for (const std::string& option : overrides) {
    std::string path = option.substr(0, option.find('='));
    std::erase(path, ' ');
    if (path == "network.file" || path == "network.kind") apply_override(root, option);
  }
  const auto section = section_of(root, "network", {"file", "kind"});
  const auto named = section ? section->find("file") : std::nullopt;
  if (!named || (named->node->kind == ConfigNode::Kind::text && named->node->text.empty()))
    return std::nullopt;
  MeasuredText source = read_measured(root, *named, kLevelsKind);
  NetworkFile file{parse_toml(source.text, std::make_shared<const std::string>(source.name)),
                   std::move(source.held)};
  for (const MeasuredLevel& level : read_levels(file.tree_, section->find("kind")))
    give_level(root, level);
  return file;
}

void NetworkFile::require_fit(const Scenario& scenario) const {
  const auto cluster = section_of(tree_, "cluster", {"ranks_of_node", "datacenters"});
  if (!cluster) fail_at(tree_.place, "there is no [cluster] ({}). Name another file.", kNoLevels);
  const Field ranks = cluster->require("ranks_of_node", kNoLevels);
  const std::int64_t measured = read_integer(ranks, 1, 1 << 20);
  for (const NodeInterfaces& node : scenario.nodes)
    if (node.gpus != measured)
      fail_at(ranks.node->place,
              "the levels are of another cluster: its nodes have {} ranks, the scenario's {} "
              "(node.gpus). Measure it with bench_collectives --fit, or name another network.file.",
              measured, node.gpus);
  std::vector<std::string> names, own;
  for (const Field& name : elements(cluster->require("datacenters", kNoLevels)))
    names.push_back(read_text(name));
  for (const Datacenter& datacenter : scenario.datacenters) own.push_back(datacenter.name);
  std::ranges::sort(names);
  std::ranges::sort(own);
  if (names != own)
    fail_at(cluster->find("datacenters")->node->place,
            "the levels are of another cluster: its datacenters are {}, the scenario's {}. Measure "
            "it with bench_collectives --fit, or name another network.file.",
            shown(fmt::format("{}", fmt::join(names, ", "))), fmt::join(own, ", "));
}

}  // namespace longhaul::scenario
