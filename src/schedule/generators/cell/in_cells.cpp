#include "schedule/generators/cell/in_cells.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/index.hpp"
#include "schedule/cells.hpp"
#include "schedule/generators/registry.hpp"

namespace longhaul::schedule {
namespace {

/// (cell, from, to): who shares turns.
using TurnKey = std::tuple<int, DeviceId, DeviceId>;

/// Messages of every way, each replica's in the order of its rows.
std::map<TurnKey, std::vector<std::vector<OrderedMessage>>> messages_of_cells(
    const Schedule& schedule, const Scenario& scenario) {
  std::map<TurnKey, std::vector<std::vector<OrderedMessage>>> messages;
  for (const ReplicaId replica : schedule.replica_ids()) {
    const int cell = schedule.cell_of(replica);
    for (const DeviceId device : schedule.device_ids()) {
      for (const Block& block : schedule.row(replica, device)) {
        const ChunkId taker = taker_of(schedule, block);
        const DeviceId to = taker == kNone<ChunkId> ? device : schedule.device_of_chunk[taker];
        const DatacenterId here = scenario.datacenter_of(scenario.rank(replica, device));
        if (here == scenario.datacenter_of(scenario.rank(replica, to))) continue;
        const CellReplicas members = cell_replicas(schedule, cell);
        auto& of_way = messages[{cell, device, to}];
        of_way.resize(at(members.count));
        of_way[at(members.local_dp_rank(replica))].push_back({replica, block});
      }
    }
  }
  return messages;
}

}  // namespace

bool shares_wan(const Scenario& scenario) {
  if (cell_size(scenario) < 2) return false;
  for (const DeviceId device : ids<DeviceId>(scenario.parallel.stages - 1)) {
    if (scenario.datacenter_of(scenario.rank(ReplicaId{0}, device)) !=
        scenario.datacenter_of(scenario.rank(ReplicaId{0}, next(device))))
      return true;
  }
  return false;
}

Scenario pooled_links(const Scenario& scenario) {
  Scenario pooled = scenario;
  const double nodes = cell_size(scenario);
  const auto times = [&](Bandwidth rate) { return Bandwidth{rate.bits_per_second() * nodes}; };
  for (Link& link : pooled.links) {
    // A link that all pipelines share gains nothing by their nodes.
    if (link.from == link.to || link.sharing == Sharing::datacenter) continue;
    link.bandwidth = std::min(times(link.bandwidth), link.aggregate);
  }
  for (NodeInterfaces& interfaces : pooled.nodes) {
    interfaces.egress = times(interfaces.egress);
    interfaces.ingress = times(interfaces.ingress);
  }
  return pooled;
}

Result<Schedule> in_cells(const Schedule& schedule, const Scenario& scenario) {
  if (schedule.cell > 1)
    return refused("{} shares the WAN already (in cells of {} pipelines). Name it without \"{}\".",
                   schedule.name, schedule.cell, kSharedPrefix);
  Schedule shared = schedule;
  shared.name = shared_name(schedule.name);
  if (!shares_wan(scenario)) return shared;
  if (!schedule.replicas_share_rows() && schedule.replicas > 1)
    return refused(
        "{} has rows of its own for each replica (cells take one order for all). Write one row a "
        "device.",
        schedule.name);
  shared.cell = cell_size(scenario);
  shared.link_orders.clear();
  shared.rows.clear();
  for (const ReplicaId replica : schedule.replica_ids()) {
    for (const DeviceId device : schedule.device_ids()) {
      const auto row = schedule.row(replica, device);
      shared.rows.emplace_back(row.begin(), row.end());
    }
  }
  return shared;
}

void take_turns_evenly(Schedule& schedule, const Scenario& scenario) {
  schedule.link_orders.clear();
  for (const auto& [way, of_ranks] : messages_of_cells(schedule, scenario)) {
    LinkOrder& turns = schedule.link_orders.emplace_back(std::apply(turns_order, way));
    std::size_t most = 0;
    for (const auto& mine : of_ranks) most = std::max(most, mine.size());
    for (std::size_t place = 0; place < most; ++place) {
      for (const auto& mine : of_ranks) {
        if (place < mine.size()) turns.messages.push_back(mine[place]);
      }
    }
  }
}

}  // namespace longhaul::schedule
