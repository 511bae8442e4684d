#include <algorithm>

#include "base/index.hpp"
#include "scenario/reader/sections.hpp"
#include "scenario/training/read_train.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::size_t kMostDatacenters = 1024;  // a million links, 200 MB of them
constexpr double kMostSpeed = 1000;
constexpr double kMostPrice = 1e6;  // $

std::string read_name(const Section& section, const std::vector<Datacenter>& before) {
  const Field field = section.require("name", "links and overrides call it by its name");
  const std::string name = read_text(field);
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  if (name.empty() || name.size() > 60 || name == "all" || !std::ranges::all_of(name, good))
    fail_at(field.node->place,
            "{} = \"{}\" is no name (letters, digits, - and _; \"all\" is "
            "taken; --set writes datacenter.NAME). Choose another.",
            field.path, shown(name));
  if (std::ranges::any_of(before, [&](const Datacenter& other) { return other.name == name; }))
    fail_at(field.node->place,
            "{} = \"{}\" is there already (names tell datacenters apart). "
            "Choose another.",
            field.path, name);
  return name;
}

/// The indices of a key, or all where it is missing.
std::vector<std::pair<int, ConfigPosition>> indices(const Section& section, const char* key,
                                                    int end) {
  std::vector<std::pair<int, ConfigPosition>> result;
  if (const auto field = section.find(key)) {
    for (const auto& [i, item] : read_indices(*field, end))
      result.emplace_back(i, item.node->place);
  } else {
    for (int i = 0; i < end; ++i) result.emplace_back(i, section.place());
  }
  return result;
}

/// Places the stages of one datacenter; returns how many ranks it got.
std::int64_t place_ranks(const Section& section, DatacenterId id, Scenario& scenario) {
  const auto replicas = indices(section, "replicas", scenario.parallel.replicas);
  std::int64_t placed = 0;
  for (const auto& [stage_number, place] : indices(section, "stages", scenario.parallel.stages)) {
    const DeviceId stage{stage_number};
    for (const auto& [number, _] : replicas) {
      const ReplicaId replica{number};
      for (int tensor = 0; tensor < scenario.parallel.tensor; ++tensor) {
        DatacenterId& at = scenario.placement[index(scenario.rank(replica, stage, tensor))];
        if (at != kNone<DatacenterId>)
          fail_at(place, "stage {} of replica {} is placed twice (in {} and in {}). Keep one.",
                  stage, replica, scenario.datacenters[index(at)].name,
                  scenario.datacenters[index(id)].name);
        at = id;
        ++placed;
      }
    }
  }
  return placed;
}

void read_gpus(const Section& section, std::int64_t ranks, const Scenario& scenario,
               Datacenter& datacenter) {
  const auto field = section.find("gpus");
  if (!field) return;
  datacenter.gpus = static_cast<int>(read_integer(*field, 0, 1 << 30));
  const int gpus_of_rank = scenario.model ? scenario.model->tensor_parallel : 1;
  if (ranks * gpus_of_rank > *datacenter.gpus)
    fail_at(field->node->place,
            "{} = {} is too few for what is placed in {} ({} ranks of {} GPUs). Place fewer "
            "stages there or give it more GPUs.",
            field->path, *datacenter.gpus, datacenter.name, ranks, gpus_of_rank);
}

void refuse_unplaced(const ConfigNode& root, const Scenario& scenario) {
  const auto missing = std::ranges::find(scenario.placement, kNone<DatacenterId>);
  if (missing == scenario.placement.end()) return;
  const RankPlace place =
      scenario.place_of(Rank{static_cast<std::int32_t>(missing - scenario.placement.begin())});
  fail_at(root.find("parallel")->find("stages")->place,
          "stage {} of replica {} is in no datacenter (parallel asks for {} stages x {} replicas). "
          "Add it to the stages of one [[datacenter]].",
          place.stage, place.replica, scenario.parallel.stages, scenario.parallel.replicas);
}

/// One for all of its nodes, or one for each.
void read_gpu_models(const Field& field, std::int64_t ranks, Datacenter& datacenter) {
  datacenter.gpu_models = read_gpu_names(field);
  const auto of_node = static_cast<std::int64_t>(datacenter.gpus_per_node.value_or(1));
  const std::int64_t nodes = (ranks + of_node - 1) / of_node;
  if (field.node->kind == ConfigNode::Kind::list && std::ssize(datacenter.gpu_models) != nodes)
    fail_at(field.node->place,
            "{} names {} GPUs, but {} has {} nodes ({} ranks, {} of a node). Name one for each "
            "node, or one for all.",
            field.path, datacenter.gpu_models.size(), datacenter.name, nodes, ranks, of_node);
}

std::string read_region(const Field& field) {
  const std::string region = read_text(field);
  if (region.empty())
    fail_at(field.node->place, "{} is empty (no region is called so). Remove it.", field.path);
  return region;
}

/// Do several datacenters leave their stages to a planner?
bool leaves_open(const std::vector<const ConfigNode*>& tables) {
  return tables.size() > 1 && std::ranges::none_of(tables, [](const ConfigNode* table) {
           return table->find("stages") != nullptr || table->find("replicas") != nullptr;
         });
}

[[noreturn]] void refuse_open_placement(const std::vector<const ConfigNode*>& tables,
                                        const Scenario& scenario) {
  fail_at(
      tables.front()->place,
      "none of {} datacenters says which of {} stages it holds (several of them leave it open). "
      "Give each its stages, or ask `longhaul plan`, which chooses them.",
      tables.size(), scenario.parallel.stages);
}

void read_datacenter(const ConfigNode& table, Scenario& scenario) {
  const Section section{table,
                        "datacenter",
                        {"name", "stages", "replicas", "gpus", "speed", "region", "gpus_per_node",
                         "price", "egress_price", "gpu"}};
  if (scenario.datacenters.size() == kMostDatacenters)
    fail_at(section.place(), "this is datacenter {} ({} is the limit). Use fewer.",
            kMostDatacenters + 1, kMostDatacenters);
  const DatacenterId id{static_cast<int>(scenario.datacenters.size())};
  scenario.datacenters.push_back({read_name(section, scenario.datacenters), std::nullopt, 1.0});
  Datacenter& datacenter = scenario.datacenters.back();
  if (const auto field = section.find("speed"))
    datacenter.speed = read_number(*field, 1 / kMostSpeed, kMostSpeed);
  if (const auto field = section.find("region")) datacenter.region = read_region(*field);
  if (const auto field = section.find("gpus_per_node"))
    datacenter.gpus_per_node = static_cast<int>(read_integer(*field, 1, 1 << 20));
  if (const auto field = section.find("price"))
    datacenter.price = read_number(*field, 0, kMostPrice);
  if (const auto field = section.find("egress_price"))
    datacenter.egress_price = read_number(*field, 0, kMostPrice);
  const std::int64_t ranks = scenario.is_placed() ? place_ranks(section, id, scenario) : 0;
  read_gpus(section, ranks, scenario, datacenter);
  if (const auto field = section.find("gpu")) read_gpu_models(*field, ranks, datacenter);
}

}  // namespace

void read_placement(const ConfigNode& root, Placing placing, Scenario& scenario) {
  const auto tables = tables_of(root, "datacenter");
  const bool placed = !leaves_open(tables);
  if (!placed && placing == Placing::required) refuse_open_placement(tables, scenario);
  if (placed) scenario.placement.assign(to_size(scenario.training_ranks()), kNone<DatacenterId>);
  if (tables.empty()) {
    scenario.datacenters = {{"local", std::nullopt, 1.0}};
    std::ranges::fill(scenario.placement, DatacenterId{0});
    return;
  }
  for (const ConfigNode* table : tables) read_datacenter(*table, scenario);
  if (!placed) return;
  refuse_unplaced(root, scenario);
}

}  // namespace longhaul::scenario
