#include "schedule/link_delays.hpp"

#include <algorithm>

namespace longhaul {

LinkDelays::LinkDelays(const Scenario& scenario) : scenario_{scenario}, ways_{scenario} {}

int LinkDelays::resource(const Held& held) {
  const auto known = std::ranges::find(held_, held);
  if (known != held_.end()) return static_cast<int>(known - held_.begin());
  held_.push_back(held);
  return static_cast<int>(held_.size()) - 1;
}

RingHop LinkDelays::slowest_hop(int device) const {
  RingHop slowest;
  const int replicas = scenario_.parallel.replicas;
  for (int replica = 0; replica < replicas; ++replica) {
    const NetworkRoute hop = ways_.between(scenario_.rank(replica, device),
                                           scenario_.rank((replica + 1) % replicas, device));
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
  std::vector<NetworkRoute> ways;
  for (int replica = 0; replica < scenario_.parallel.replicas; ++replica)
    ways.push_back(ways_.between(scenario_.rank(replica, from), scenario_.rank(replica, to)));
  LinkDelay slowest;
  bool first = true;
  for (const NetworkRoute& each : ways) {
    std::int64_t rounds = 1;
    for (const NetworkRoute::Hold& hold : each.holds) {
      const auto uses = [&](const NetworkRoute& other) {
        return std::ranges::find(other.holds, hold.what, &NetworkRoute::Hold::what) !=
               other.holds.end();
      };
      const std::int64_t rivals = std::ranges::count_if(ways, uses);
      rounds = std::max(rounds, (rivals + hold.capacity - 1) / hold.capacity);
    }
    const Duration transfer = rounds * (message / each.rate);
    if (!first && transfer + each.latency <= slowest.transfer + slowest.latency) continue;
    first = false;
    slowest = {transfer, each.latency, {}, each.holds.front().what.kind != HeldKind::pair};
    slowest.shared |= each.holds.size() > 1;
    for (const NetworkRoute::Hold& hold : each.holds)
      slowest.resources.push_back(resource(hold.what));
  }
  return slowest;
}

}  // namespace longhaul
