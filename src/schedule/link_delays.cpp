#include "schedule/link_delays.hpp"

#include <algorithm>

namespace longhaul {

LinkDelays::LinkDelays(const Scenario& scenario) : scenario_{scenario} {
  std::vector<int> seen(scenario.datacenters.size());
  for (const DatacenterId datacenter : scenario.placement)
    place_in_datacenter_.push_back(seen[index(datacenter)]++);
}

LinkDelays::Way LinkDelays::way(Rank from, Rank to) const {
  const DatacenterId a = scenario_.datacenter_of(from);
  const DatacenterId b = scenario_.datacenter_of(to);
  Way way;
  const Link* const link = scenario_.link(a, b);
  if (link != nullptr) {
    way.rate = link->bandwidth;
    way.latency = link->latency;
  }
  if (link != nullptr && link->sharing == Sharing::datacenter) {
    way.keys.push_back({Kind::datacenters, static_cast<int>(index(a)), static_cast<int>(index(b))});
  } else {
    way.keys.push_back({Kind::pair, static_cast<int>(index(from)), static_cast<int>(index(to))});
  }
  if (a == b) return way;
  const auto add = [&](Rank rank, DatacenterId datacenter, Kind kind) {
    const NodeInterfaces* const nodes = scenario_.interfaces(datacenter);
    if (nodes == nullptr) return;
    way.rate = std::min(way.rate, kind == Kind::egress ? nodes->egress : nodes->ingress);
    way.keys.push_back({kind, static_cast<int>(index(datacenter)),
                        place_in_datacenter_[index(rank)] / nodes->gpus});
  };
  add(from, a, Kind::egress);
  add(to, b, Kind::ingress);
  return way;
}

int LinkDelays::resource(const Key& key) {
  const auto known = std::ranges::find(keys_, key);
  if (known != keys_.end()) return static_cast<int>(known - keys_.begin());
  keys_.push_back(key);
  return static_cast<int>(keys_.size()) - 1;
}

RingHop LinkDelays::slowest_hop(int device) const {
  RingHop slowest;
  const int replicas = scenario_.parallel.replicas;
  for (int replica = 0; replica < replicas; ++replica) {
    const Way hop =
        way(scenario_.rank(replica, device), scenario_.rank((replica + 1) % replicas, device));
    slowest.rate = std::min(slowest.rate, hop.rate);
    slowest.latency = std::max(slowest.latency, hop.latency);
  }
  return slowest;
}

Duration LinkDelays::ring(int device, Bytes weights) const {
  const std::int64_t members = scenario_.parallel.replicas;
  if (members < 2) return {};
  return ring_time(slowest_hop(device), weights, members);
}

Duration LinkDelays::exchange(int device, Bytes weights) const {
  if (scenario_.parallel.replicas < 2) return {};
  return exchange_time(slowest_hop(device), weights);
}

Duration LinkDelays::all_reduce_at_rate(int device, Bytes weights) const {
  const std::int64_t members = scenario_.parallel.replicas;
  if (members < 2) return {};
  return longhaul::all_reduce_at_rate(slowest_hop(device), weights, members);
}

LinkDelay LinkDelays::delay(int from, int to, Bytes message) {
  std::vector<Way> ways;
  for (int replica = 0; replica < scenario_.parallel.replicas; ++replica)
    ways.push_back(way(scenario_.rank(replica, from), scenario_.rank(replica, to)));
  LinkDelay slowest;
  bool first = true;
  for (const Way& each : ways) {
    std::int64_t rivals = 1;
    for (const Key& key : each.keys) {
      const auto uses = [&](const Way& other) {
        return std::ranges::find(other.keys, key) != other.keys.end();
      };
      rivals = std::max<std::int64_t>(rivals, std::ranges::count_if(ways, uses));
    }
    const Duration transfer = rivals * (message / each.rate);
    if (!first && transfer + each.latency <= slowest.transfer + slowest.latency) continue;
    first = false;
    slowest = {transfer, each.latency, {}, each.keys.front().kind != Kind::pair};
    slowest.shared |= each.keys.size() > 1;
    for (const Key& key : each.keys) slowest.resources.push_back(resource(key));
  }
  return slowest;
}

}  // namespace longhaul
