#include "planner/sites/sites.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::planner {
namespace {

/// Costs were divided by the speed of where the file puts their stage.
Costs at_speed_one(const Scenario& scenario) {
  Costs costs = scenario.costs;
  if (scenario.placement.empty()) return costs;
  for (const DeviceId stage : scenario.device_ids()) {
    const double speed = scenario.speed_of_stage(stage);
    if (speed == 1) continue;
    for (auto* times :
         {&costs.forward, &costs.backward, &costs.dgrad, &costs.wgrad, &costs.recompute}) {
      Duration& time = (*times)[index(stage)];
      time = scaled(time, speed);
    }
    if (!costs.optimizer.empty())
      costs.optimizer[index(stage)] = scaled(costs.optimizer[index(stage)], speed);
  }
  return costs;
}

/// A plan chooses replicas of one kind, a rank for each stage of each.
void require_plain_ranks(const Scenario& scenario) {
  if (scenario.parallel.tensor > 1)
    fail(
        "{} has parallel.tensor = {} (a plan counts a stage's ranks as one). Write "
        "model.tensor_parallel, or --set parallel.tensor=1.",
        scenario.name, scenario.parallel.tensor);
  if (scenario.has_uneven_replicas())
    fail(
        "the replicas of {} differ in costs, speeds or microbatches (a plan chooses how many equal "
        "ones there are). Leave the differences out.",
        scenario.name);
  if (!scenario.services.empty())
    fail(
        "{} has [[service]] ranks (a plan divides GPUs over stages alone). Leave them out, and "
        "their GPUs out of gpus.",
        scenario.name);
}

void order_by_distance(const GpuInventory& inventory, std::vector<DatacenterId>& order) {
  const auto latency = [&](DatacenterId a, DatacenterId b) {
    const Link* const link = inventory.scenario().link(a, b);
    return link == nullptr ? Duration::max() : link->latency;
  };
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(i);
    const auto nearest = std::ranges::min_element(begin, order.end(), {}, [&](DatacenterId id) {
      return std::pair{latency(order[i - 1], id), -inventory.gpus(id)};
    });
    std::rotate(begin, nearest, nearest + 1);
  }
}

}  // namespace

GpuInventory::GpuInventory(const Scenario& scenario)
    : scenario_{scenario}, costs_{at_speed_one(scenario)} {
  require_plain_ranks(scenario);
  if (scenario.overlap.largest() > 1)
    fail(
        "the scenario has an [overlap] (who places stages bounds times of cells with blocks of one "
        "length, and adds data parallelism after them). Leave it out, or write --set "
        "overlap.slowdown=1.");
  for (const Datacenter& datacenter : scenario.datacenters) {
    if (!datacenter.gpus)
      fail(
          "datacenter {} does not say how many GPUs it has (the plan divides them). Add gpus = N "
          "to it, or --set datacenter.{}.gpus=N.",
          datacenter.name, datacenter.name);
    gpus_.push_back(*datacenter.gpus);
  }
  if (scenario.model) gpus_of_stage_ = scenario.model->tensor_parallel;
}

int GpuInventory::most_cells(int pipelines) const {
  const std::int64_t all = std::accumulate(gpus_.begin(), gpus_.end(), std::int64_t{0});
  return static_cast<int>(all / (static_cast<std::int64_t>(pipelines) * stages() * gpus_of_stage_));
}

bool GpuInventory::priced() const {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i] > 0 && !scenario_.datacenters[i].price) return false;
  }
  return true;
}

std::vector<DatacenterId> ordered_datacenters(const GpuInventory& inventory, SiteOrder order) {
  std::vector<DatacenterId> ids;
  for (int i = 0; i < inventory.datacenters(); ++i) {
    if (inventory.gpus(DatacenterId{i}) > 0) ids.push_back(DatacenterId{i});
  }
  const auto price = [&](DatacenterId id) {
    if (order != SiteOrder::price) return 0.0;
    return inventory.scenario().datacenters[index(id)].price.value_or(
        std::numeric_limits<double>::infinity());
  };
  std::ranges::stable_sort(ids, {}, [&](DatacenterId id) {
    return std::pair{price(id), -inventory.gpus(id)};
  });
  if (order == SiteOrder::distance && !ids.empty()) order_by_distance(inventory, ids);
  return ids;
}

std::optional<StagePlacement> greedy_placement(const GpuInventory& inventory,
                                               std::span<const DatacenterId> order, int replicas) {
  StagePlacement placement;
  int left = inventory.stages();
  for (const DatacenterId id : order) {
    const int stages = std::min(left, inventory.stages_for(id, replicas));
    if (stages > 0) placement.push_back({id, stages});
    left -= stages;
    if (left == 0) return placement;
  }
  return std::nullopt;
}

std::optional<Bandwidth> node_rate(const Scenario& scenario, DatacenterId from, DatacenterId to) {
  const Link* const link = scenario.link(from, to);
  if (link == nullptr) return std::nullopt;
  Bandwidth rate = std::min(link->bandwidth, link->aggregate);
  if (const NodeInterfaces* nodes = scenario.interfaces(from)) rate = std::min(rate, nodes->egress);
  if (const NodeInterfaces* nodes = scenario.interfaces(to)) rate = std::min(rate, nodes->ingress);
  return rate;
}

int cell_size(const GpuInventory& inventory, std::span<const DatacenterId> order) {
  constexpr std::int64_t kMost = 255;  // Op::pieces
  if (inventory.scenario().parallel.cell) return *inventory.scenario().parallel.cell;
  std::int64_t pipelines = 1;
  const auto raise = [&](DatacenterId from, DatacenterId to) {
    const auto rate = node_rate(inventory.scenario(), from, to);
    if (!rate) return;
    const Costs& costs = inventory.costs();
    const double speed = inventory.scenario().datacenters[index(from)].speed;
    for (std::size_t s = 0; s + 1 < costs.forward.size(); ++s) {
      const std::int64_t forward = scaled(costs.forward[s], 1 / speed).count();
      const std::int64_t transfer = (costs.message[s] / *rate).count();
      if (forward > 0) pipelines = std::max(pipelines, (transfer + forward - 1) / forward);
    }
  };
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    raise(order[i], order[i + 1]);
    raise(order[i + 1], order[i]);
  }
  return static_cast<int>(std::min(pipelines, kMost));
}

std::vector<int> cell_sizes(const GpuInventory& inventory, std::span<const DatacenterId> order) {
  std::vector<int> sizes{cell_size(inventory, order)};
  if (inventory.scenario().parallel.cell) return sizes;
  for (std::size_t count = order.size(); count-- > 1;) {
    const int size = cell_size(inventory, order.first(count));
    if (size < sizes.back()) sizes.push_back(size);
  }
  if (sizes.back() > 1) sizes.push_back(1);
  return sizes;
}

std::vector<int> cell_sizes(const GpuInventory& inventory) {
  if (const auto given = inventory.scenario().parallel.cell) return {*given};
  std::set<int> sizes{1};
  for (int a = 0; a < inventory.datacenters(); ++a) {
    for (int b = 0; b < a; ++b)
      sizes.insert(cell_size(inventory, std::array{DatacenterId{a}, DatacenterId{b}}));
  }
  const std::vector<int> all(sizes.begin(), sizes.end());
  if (all.size() <= 4) return all;
  return {all.front(), all[all.size() / 3], all[2 * all.size() / 3], all.back()};
}

std::string to_text(const GpuInventory& inventory, const StagePlacement& placement) {
  std::string text;
  for (const DatacenterStages& share : placement)
    text += fmt::format("{}{} {}", text.empty() ? "" : " > ", inventory.name(share.datacenter),
                        share.stages);
  return text;
}

}  // namespace longhaul::planner
