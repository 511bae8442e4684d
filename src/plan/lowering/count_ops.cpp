#include "plan/lowering/count_ops.hpp"

#include "base/index.hpp"
#include "plan/lowering/collectives.hpp"
#include "plan/lowering/messages.hpp"

namespace longhaul::plan {
namespace {

/// Of a message between datacenters in a cell of so many pipelines: the owner's piece has one leg,
/// the others three.
std::size_t sides_of_pieces(std::size_t pipelines) { return 2 * (1 + 3 * (pipelines - 1)); }

std::size_t count_messages(const Schedule& schedule, const Scenario& scenario) {
  const bool equal = schedule.replicas_share_rows();
  Messages messages;
  std::size_t sides = 0;
  for (const ReplicaId replica : schedule.replica_ids()) {
    if (replica == ReplicaId{0} || !equal) messages = find_messages(schedule, replica);
    const CellReplicas cell = cell_replicas(schedule, schedule.cell_of(replica));
    for (const auto& channel : messages.channels) {
      const bool relayed =
          schedule.cell > 1 && scenario.datacenter_of(scenario.rank(replica, channel.from)) !=
                                   scenario.datacenter_of(scenario.rank(replica, channel.to));
      sides += channel.count * (relayed ? sides_of_pieces(to_size(cell.count)) : 2);
    }
  }
  return sides;
}

}  // namespace

std::size_t count_messages_of_ring(const Collective& ring) {
  const std::size_t members = ring.members.size();
  return to_size(facts_of(ring.kind).rounds) * members * (members - 1);
}

std::size_t count_ops(const Schedule& schedule, const Scenario& scenario) {
  std::size_t ops = count_messages(schedule, scenario);
  for (const ReplicaId replica : schedule.replica_ids())
    for (const DeviceId device : schedule.device_ids()) ops += schedule.row(replica, device).size();
  const bool estimated = is_estimate(scenario.parallel.gradient_sync);
  for (const StageCollective& each : find_collectives(schedule, scenario))
    ops += estimated ? each.collective.members.size() : 2 * count_messages_of_ring(each.collective);
  return ops;
}

}  // namespace longhaul::plan
