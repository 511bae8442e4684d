#include "planner/collectives/one_way.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::planner {

using schedule::NetworkRoute;
using schedule::RouteSegment;

Crossing bytes_across(const plan::Collective& collective, const std::vector<bool>& inside) {
  const auto members = static_cast<std::int64_t>(inside.size());
  const Bytes all = collective.size;
  Bytes mine;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < members; ++i) {
    if (!inside[at(i)]) continue;
    mine += plan::shard_size(all, members, i);
    ++count;
  }
  const bool has_first = inside.front();
  switch (collective.kind) {
    case CollectiveKind::all_gather: return {mine, all - mine};
    case CollectiveKind::reduce_scatter: return {all - mine, mine};
    case CollectiveKind::all_reduce: return {all, all};
    case CollectiveKind::all_to_all: return {(all - mine) * count, mine * (members - count)};
    case CollectiveKind::broadcast: return has_first ? Crossing{all, {}} : Crossing{{}, all};
    case CollectiveKind::reduce: return has_first ? Crossing{{}, all} : Crossing{all, {}};
    case CollectiveKind::gather: return has_first ? Crossing{{}, all - mine} : Crossing{mine, {}};
    case CollectiveKind::scatter: return has_first ? Crossing{all - mine, {}} : Crossing{{}, mine};
  }
  return {};
}

void Capacity::add(const NetworkRoute& route, std::initializer_list<ResourceKind> kinds) {
  bool held = false;
  for (const RouteSegment& segment : route.segments) {
    if (std::ranges::find(kinds, segment.resource.kind) == kinds.end()) continue;
    if (segment.rate.is_unlimited()) continue;
    // Where several messages travel at a time, each at the route's rate.
    const double together = segment.capacity > 1 ? segment.capacity * route.rate.bits_per_second()
                                                 : segment.rate.bits_per_second();
    rates_[segment.resource] =
        std::max(rates_[segment.resource], std::min(together, segment.rate.bits_per_second()));
    held = true;
  }
  unlimited_ = unlimited_ || !held;
}

double Capacity::rate() const {
  if (unlimited_) return Bandwidth::unlimited().bits_per_second();
  double sum = 0;
  for (const auto& [resource, rate] : rates_) sum += rate;
  return sum;
}

void OneWay::add(const NetworkRoute& route, std::pair<int, int> datacenters) {
  senders_.add(route, {ResourceKind::port_out, ResourceKind::internal_out, ResourceKind::egress});
  receivers_.add(route, {ResourceKind::port_in, ResourceKind::internal_in, ResourceKind::ingress});
  PairCapacity& pair = pairs_[datacenters];
  pair.links.add(route, {ResourceKind::link, ResourceKind::shared_link});
  pair.aggregates.add(route, {ResourceKind::aggregate});
  pair.senders.add(route,
                   {ResourceKind::port_out, ResourceKind::internal_out, ResourceKind::egress});
  pair.receivers.add(route,
                     {ResourceKind::port_in, ResourceKind::internal_in, ResourceKind::ingress});
  latency_ = latency_ ? std::min(*latency_, route.latency) : route.latency;
}

Bandwidth OneWay::rate() const {
  double of_pairs = 0;
  for (const auto& [datacenters, pair] : pairs_)
    of_pairs += std::min(
        {pair.links.rate(), pair.aggregates.rate(), pair.senders.rate(), pair.receivers.rate()});
  return Bandwidth{std::min({of_pairs, senders_.rate(), receivers_.rate()})};
}

Duration OneWay::time(Bytes size) const {
  const double transfer = static_cast<double>(size.count()) * 8e9 / rate().bits_per_second();
  return Duration{static_cast<std::int64_t>(transfer)} + *latency_;
}

}  // namespace longhaul::planner
