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

RingHop LinkDelays::slowest_hop(DeviceId device) const {
  RingHop slowest;
  for (const ReplicaId replica : scenario_.replica_ids()) {
    const ReplicaId taker = next_in_ring(replica, scenario_.parallel.replicas);
    const NetworkRoute hop =
        routes_.between(scenario_.rank(replica, device), scenario_.rank(taker, device));
    slowest.rate = std::min(slowest.rate, hop.rate);
    slowest.latency = std::max(slowest.latency, hop.latency);
  }
  return slowest;
}

Duration LinkDelays::ring(DeviceId device, Bytes weights) const {
  const std::int64_t members = scenario_.parallel.replicas;
  if (members < 2) return {};
  return ring_time(slowest_hop(device), weights, members);
}

Duration LinkDelays::exchange(DeviceId device, Bytes weights) const {
  if (scenario_.parallel.replicas < 2) return {};
  return exchange_time(slowest_hop(device), weights);
}

Duration LinkDelays::all_reduce_at_rate(DeviceId device, Bytes weights) const {
  const std::int64_t members = scenario_.parallel.replicas;
  if (members < 2) return {};
  return schedule::all_reduce_at_rate(slowest_hop(device), weights, members);
}

LinkDelay LinkDelays::delay(DeviceId from, DeviceId to, Bytes message) {
  std::vector<NetworkRoute> routes;
  for (const ReplicaId replica : scenario_.replica_ids())
    routes.push_back(routes_.between(scenario_.rank(replica, from), scenario_.rank(replica, to)));
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
