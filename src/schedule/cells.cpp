#include "schedule/cells.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::schedule {
namespace {

/// Transfer time of one message of device `from` to its neighbour, at the rate of one node.
Duration transfer(const Scenario& scenario, DeviceId from, DeviceId to, Bytes message) {
  const DatacenterId a = scenario.datacenter_of(scenario.rank(ReplicaId{0}, from));
  const DatacenterId b = scenario.datacenter_of(scenario.rank(ReplicaId{0}, to));
  const Link* const link = scenario.link(a, b);
  if (a == b || link == nullptr) return Duration::zero();
  Bandwidth rate = std::min(link->bandwidth, link->aggregate);
  if (const NodeInterfaces* nodes = scenario.interfaces(a)) rate = std::min(rate, nodes->egress);
  if (const NodeInterfaces* nodes = scenario.interfaces(b)) rate = std::min(rate, nodes->ingress);
  return message / rate;
}

}  // namespace

int cell_size(const Scenario& scenario) {
  const int most = std::min(scenario.parallel.replicas, kMostPipelinesOfACell);
  if (scenario.parallel.cell) return std::min(*scenario.parallel.cell, most);
  std::int64_t pipelines = 1;
  for (const DeviceId device : ids<DeviceId>(scenario.parallel.stages - 1)) {
    const auto d = index(device);
    const std::int64_t forward = scenario.costs.forward[d].count();
    if (forward == 0) continue;
    const Bytes message = scenario.costs.message[d];
    const std::int64_t slower = std::max(transfer(scenario, device, next(device), message),
                                         transfer(scenario, next(device), device, message))
                                    .count();
    pipelines = std::max(pipelines, (slower + forward - 1) / forward);
  }
  return static_cast<int>(std::min<std::int64_t>(pipelines, most));
}

std::optional<Refusal> why_no_cells(const Schedule& schedule, const Scenario& scenario) {
  if (schedule.cell > kMostPipelinesOfACell)
    return refused(
        "schedule {} has cells of {} pipelines (a message is cut into at most {} pieces). Set a "
        "smaller [parallel] cell.",
        schedule.name, schedule.cell, kMostPipelinesOfACell);
  const Parallel& parallel = scenario.parallel;
  if (schedule.cell > 1 && scenario.has_uneven_replicas())
    return refused(
        "pipelines of a DP-cell take turns with equal messages (the replicas differ in costs or "
        "microbatches). Use a schedule without cells.");
  if (schedule.cell > 1 && (parallel.tensor > 1 || parallel.order != kTensorStageReplica))
    return refused(
        "pipelines of a DP-cell relay for each other in the order of their ranks (the schedule has "
        "cells of {}). Use parallel.tensor = 1 and order = \"tensor,stage,replica\".",
        schedule.cell);
  for (const ReplicaId replica : schedule.replica_ids()) {
    const int cell = schedule.cell_of(replica);
    const ReplicaId first = cell_replicas(schedule, cell).first;
    for (const DeviceId device : schedule.device_ids()) {
      const DatacenterId here = scenario.datacenter_of(scenario.rank(replica, device));
      const DatacenterId there = scenario.datacenter_of(scenario.rank(first, device));
      if (here == there) continue;
      return refused(
          "device {} of cell {} lies in {} and in {} (replicas {} and {}; a cell's pipelines relay "
          "for each other inside one datacenter). Place the replicas of a cell alike, or set "
          "another [parallel] cell.",
          device, cell, scenario.datacenters[index(there)].name,
          scenario.datacenters[index(here)].name, first, replica);
    }
  }
  return std::nullopt;
}

}  // namespace longhaul::schedule
