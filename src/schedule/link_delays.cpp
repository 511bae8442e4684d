#include "schedule/link_delays.hpp"

#include <algorithm>

namespace longhaul::schedule {

LinkDelays::LinkDelays(const Scenario& scenario) : scenario_{scenario}, routes_{scenario} {}

int LinkDelays::resource(const LinkResource& held) {
  const auto known = std::ranges::find(held_, held);
  if (known != held_.end()) return static_cast<int>(known - held_.begin());
  held_.push_back(held);
  return static_cast<int>(held_.size()) - 1;
}

RingHop LinkDelays::slowest_hop(DeviceId device, const std::vector<ReplicaId>& ring) const {
  RingHop slowest;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const NetworkRoute hop = routes_.between(scenario_.rank(ring[i], device),
                                             scenario_.rank(ring[(i + 1) % ring.size()], device));
    slowest.rate = std::min(slowest.rate, hop.rate);
    slowest.latency = std::max(slowest.latency, hop.latency);
  }
  return slowest;
}

std::vector<ReplicaId> LinkDelays::all_replicas() const {
  std::vector<ReplicaId> all;
  for (const ReplicaId replica : scenario_.replica_ids()) all.push_back(replica);
  return all;
}

Duration LinkDelays::ring(DeviceId device, Bytes weights) const {
  return ring_of(device, weights, all_replicas());
}

Duration LinkDelays::ring_of(DeviceId device, Bytes weights,
                             const std::vector<ReplicaId>& members) const {
  if (members.size() < 2) return {};
  return ring_time(slowest_hop(device, members), weights, std::ssize(members));
}

SyncTimes LinkDelays::sharded(DeviceId device, Bytes weights) const {
  const int shard = scenario_.parallel.shard;
  SyncTimes slowest;
  for (int first = 0; first < scenario_.parallel.replicas; first += shard) {
    std::vector<ReplicaId> group;
    for (int replica = first; replica < first + shard; ++replica)
      group.push_back(ReplicaId{replica});
    slowest.gather = std::max(slowest.gather, ring_of(device, weights, group));
  }
  Duration copies{};
  const Bytes share{(weights.count() + shard - 1) / shard};
  for (int first = 0; first < shard; ++first) {
    std::vector<ReplicaId> group;
    for (int replica = first; replica < scenario_.parallel.replicas; replica += shard)
      group.push_back(ReplicaId{replica});
    copies = std::max(copies, 2 * ring_of(device, share, group));
  }
  slowest.reduction = slowest.gather + copies;
  return slowest;
}

Duration LinkDelays::exchange(DeviceId device, Bytes weights) const {
  if (scenario_.parallel.replicas < 2) return {};
  return exchange_time(slowest_hop(device, all_replicas()), weights);
}

Duration LinkDelays::all_reduce_at_rate(DeviceId device, Bytes weights) const {
  const std::int64_t members = scenario_.parallel.replicas;
  if (members < 2) return {};
  return schedule::all_reduce_at_rate(slowest_hop(device, all_replicas()), weights, members);
}

LinkDelay LinkDelays::delay(DeviceId from, DeviceId to, Bytes message) {
  std::vector<NetworkRoute> routes;
  for (const ReplicaId replica : scenario_.replica_ids())
    for (int tensor = 0; tensor < scenario_.parallel.tensor; ++tensor)
      routes.push_back(routes_.between(scenario_.rank(replica, from, tensor),
                                       scenario_.rank(replica, to, tensor)));
  LinkDelay slowest;
  bool first = true;
  for (const NetworkRoute& each : routes) {
    std::int64_t rounds = 1;
    for (const RouteSegment& segment : each.segments) {
      const auto uses = [&](const NetworkRoute& other) {
        return std::ranges::find(other.segments, segment.resource, &RouteSegment::resource) !=
               other.segments.end();
      };
      const std::int64_t rivals = std::ranges::count_if(routes, uses);
      rounds = std::max(rounds, (rivals + segment.capacity - 1) / segment.capacity);
    }
    const Duration transfer = rounds * (message / each.rate);
    if (!first && transfer + each.latency <= slowest.transfer + slowest.latency) continue;
    first = false;
    slowest = {
        transfer, each.latency, {}, each.segments.front().resource.kind != ResourceKind::link};
    slowest.shared |= each.segments.size() > 1;
    for (const RouteSegment& segment : each.segments)
      slowest.resources.push_back(resource(segment.resource));
  }
  return slowest;
}

}  // namespace longhaul::schedule
