#include "plan/network.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul {

Network::Network(const Scenario& scenario, Plan& plan) : scenario_{scenario}, plan_{plan} {
  plan_.set_begin.assign(1, 0);
  std::vector<int> seen(scenario.datacenters.size(), 0);
  for (const DatacenterId datacenter : scenario.placement)
    place_in_datacenter_.push_back(seen[index(datacenter)]++);
}

ResourceId Network::named(const std::string& name, ResourceKind kind) {
  const auto [at, is_new] = by_name_.try_emplace(name, ResourceId{});
  if (is_new) {
    at->second = ResourceId{static_cast<std::uint32_t>(plan_.resources.size())};
    plan_.resources.push_back({name, kind, 1, {}, 0});
  }
  return at->second;
}

ResourceSetId Network::set(const std::vector<ResourceId>& items) {
  for (const ResourceId item : items) ++plan_.resources[index(item)].lanes;
  plan_.set_items.insert(plan_.set_items.end(), items.begin(), items.end());
  plan_.set_begin.push_back(static_cast<std::uint32_t>(plan_.set_items.size()));
  return ResourceSetId{static_cast<std::uint32_t>(plan_.set_begin.size() - 2)};
}

ResourceSetId Network::device(Rank rank) {
  return set({named(fmt::format("device {}", index(rank)), ResourceKind::device)});
}

ResourceSetId Network::collective(Rank rank) {
  return set({named(fmt::format("collective {}", index(rank)), ResourceKind::collective)});
}

const Link* Network::link(Rank from, Rank to) const {
  const DatacenterId a = scenario_.datacenter_of(from);
  const DatacenterId b = scenario_.datacenter_of(to);
  const Link* found = scenario_.link(a, b);
  if (found == nullptr && a != b) {
    const std::string& x = scenario_.datacenters[index(a)].name;
    const std::string& y = scenario_.datacenters[index(b)].name;
    fail(
        "no link from {} to {} (rank {} sends to rank {}). Add [[link]] between = [\"{}\", "
        "\"{}\"].",
        x, y, index(from), index(to), x, y);
  }
  return found;
}

Route Network::route(Rank from, Rank to) {
  Route route;
  std::vector<ResourceId> items;
  const Link* const found = link(from, to);
  if (found != nullptr) {
    route.rate = found->bandwidth;
    route.latency = found->latency;
  }
  if (found != nullptr && found->sharing == Sharing::datacenter) {
    items.push_back(named(fmt::format("link {}>{}", scenario_.datacenters[index(found->from)].name,
                                      scenario_.datacenters[index(found->to)].name),
                          ResourceKind::link));
  } else {
    items.push_back(named(fmt::format("link {}>{}", index(from), index(to)), ResourceKind::link));
  }
  if (scenario_.datacenter_of(from) != scenario_.datacenter_of(to))
    add_interfaces(from, to, route, items);
  route.resources = set(items);
  return route;
}

void Network::add_interfaces(Rank from, Rank to, Route& route, std::vector<ResourceId>& items) {
  const auto add = [&](Rank rank, ResourceKind kind) {
    const NodeInterfaces* nodes = scenario_.interfaces(scenario_.datacenter_of(rank));
    if (nodes == nullptr) return;
    const bool out = kind == ResourceKind::egress;
    route.rate = std::min(route.rate, out ? nodes->egress : nodes->ingress);
    items.push_back(named(fmt::format("{} {}/{}", out ? "egress" : "ingress",
                                      scenario_.datacenters[index(nodes->datacenter)].name,
                                      place_in_datacenter_[index(rank)] / nodes->gpus),
                          kind));
  };
  add(from, ResourceKind::egress);
  add(to, ResourceKind::ingress);
}

Network::Ring Network::ring(const std::vector<Rank>& ranks) const {
  Ring ring;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Link* const hop = link(ranks[i], ranks[(i + 1) % ranks.size()]);
    if (hop == nullptr) continue;
    ring.rate = std::min(ring.rate, hop->bandwidth);
    ring.latency = std::max(ring.latency, hop->latency);
  }
  return ring;
}

}  // namespace longhaul
