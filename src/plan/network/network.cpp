#include "plan/network/network.hpp"

#include <algorithm>
#include <set>

#include "base/index.hpp"

namespace longhaul::plan {
Network::Network(const Scenario& scenario, Plan& plan)
    : scenario_{scenario}, plan_{plan}, routes_{scenario} {
  plan_.set_begin.assign(1, 0);
}

Network::Network(const Scenario& scenario, Plan& plan, Extending)
    : scenario_{scenario}, plan_{plan}, routes_{scenario} {
  for (std::size_t r = 0; r < plan.resources.size(); ++r)
    known_.emplace(plan.resources[r].name, ResourceId{static_cast<std::uint32_t>(r)});
}

Network Network::extending(const Scenario& scenario, Plan& plan) {
  return {scenario, plan, Extending::resources};
}

RankInfo Network::info(Rank rank) const {
  const RankPlace place = scenario_.place_of(rank);
  return {place.replica,         place.stage,  scenario_.datacenter_of(rank),
          routes_.node_of(rank), place.tensor, place.role};
}

ResourceId Network::add(std::string name, ResourceKind kind, int capacity) {
  plan_.resources.push_back({std::move(name), kind, static_cast<std::uint32_t>(capacity), {}, 0});
  return ResourceId{static_cast<std::uint32_t>(plan_.resources.size() - 1)};
}

ResourceId Network::held(const schedule::RouteSegment& segment) {
  const auto [at, is_new] = by_held_.try_emplace(segment.resource, ResourceId{});
  if (!is_new) return at->second;
  std::string name = name_of(segment.resource, scenario_);
  const auto known = known_.find(name);
  at->second = known != known_.end()
                   ? known->second
                   : add(std::move(name), segment.resource.kind, segment.capacity);
  return at->second;
}

ResourceSetId Network::set(const std::vector<ResourceId>& items) {
  for (const ResourceId item : items) ++plan_.resources[index(item)].lanes;
  plan_.set_items.insert(plan_.set_items.end(), items.begin(), items.end());
  plan_.set_begin.push_back(static_cast<std::uint32_t>(plan_.set_items.size()));
  return ResourceSetId{static_cast<std::uint32_t>(plan_.set_begin.size() - 2)};
}

ResourceSetId Network::device(Rank rank) {
  return set({add(fmt::format("device {}", index(rank)), ResourceKind::device)});
}

ResourceSetId Network::collective(Rank rank) {
  const auto known = collective_of_.find(rank);
  if (known != collective_of_.end()) return known->second;
  const ResourceSetId made =
      set({add(fmt::format("collective {}", index(rank)), ResourceKind::collective)});
  collective_of_.emplace(rank, made);
  return made;
}

std::vector<ResourceId> Network::held_between(const std::vector<RankPair>& pairs) {
  std::vector<ResourceId> items;
  for (const auto& [from, to] : pairs) {
    const schedule::NetworkRoute pair_route = checked_route(from, to);
    for (const schedule::RouteSegment& segment : pair_route.segments)
      items.push_back(held(segment));
  }
  std::ranges::sort(items);
  items.erase(std::ranges::unique(items).begin(), items.end());
  return items;
}

ResourceSetId Network::all_of(const std::vector<ResourceId>& held, Rank member) {
  return held.empty() ? collective(member) : set(held);
}

schedule::NetworkRoute Network::checked_route(Rank from, Rank to) {
  schedule::NetworkRoute pair_route = routes_.between(from, to);
  if (!pair_route.linked && !missing_link_) {
    const auto name = [&](Rank rank) -> const std::string& {
      return scenario_.datacenters[index(scenario_.datacenter_of(rank))].name;
    };
    missing_link_ = refused(
        "no link from {} to {} (rank {} sends to rank {}). Add [[link]] between = [\"{}\", "
        "\"{}\"].",
        name(from), name(to), index(from), index(to), name(from), name(to));
  }
  return pair_route;
}

Route Network::route(Rank from, Rank to) {
  const schedule::NetworkRoute pair_route = checked_route(from, to);
  std::vector<ResourceId> items;
  Bandwidth narrowest;
  for (const schedule::RouteSegment& segment : pair_route.segments) {
    const bool narrower = segment.rate < narrowest;
    items.insert(narrower ? items.begin() : items.end(), held(segment));  // the narrowest first
    narrowest = std::min(narrowest, segment.rate);
  }
  return {set(items), pair_route.rate, pair_route.latency};
}

Route Network::pool(const std::string& name, const std::vector<RankPair>& pairs) {
  const auto [pooled, is_new] = pools_.try_emplace(name, ResourceId{});
  if (is_new) pooled->second = add(name, ResourceKind::link);
  std::vector<ResourceId> items{pooled->second};
  std::map<ResourceKind, double> sums;  // bits per second
  std::set<schedule::LinkResource> seen;
  Route route;
  for (const auto& [from, to] : pairs) {
    const schedule::NetworkRoute pair_route = checked_route(from, to);
    route.latency = std::max(route.latency, pair_route.latency);
    for (schedule::RouteSegment segment : pair_route.segments) {
      if (!seen.insert(segment.resource).second) continue;
      const double pieces = segment.capacity * pair_route.rate.bits_per_second();
      sums[segment.resource.kind] += std::min(segment.rate.bits_per_second(), pieces);
      if (segment.resource.kind == ResourceKind::link) continue;
      segment.capacity = std::max(1, segment.capacity / static_cast<int>(pairs.size()));
      items.push_back(held(segment));
    }
  }
  for (const auto& [kind, sum] : sums) route.rate = std::min(route.rate, Bandwidth{sum});
  route.resources = set(items);
  return route;
}

schedule::RingHop Network::ring(const std::vector<Rank>& ranks) {
  schedule::RingHop ring;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const schedule::NetworkRoute hop = checked_route(ranks[i], ranks[(i + 1) % ranks.size()]);
    ring.rate = std::min(ring.rate, hop.rate);
    ring.latency = std::max(ring.latency, hop.latency);
  }
  return ring;
}

}  // namespace longhaul::plan
