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
  const auto known = collective_of_.find(rank);
  if (known != collective_of_.end()) return known->second;
  const ResourceSetId made =
      set({named(fmt::format("collective {}", index(rank)), ResourceKind::collective)});
  collective_of_.emplace(rank, made);
  return made;
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
  const Link* const found = link(from, to);
  if (found != nullptr) {
    route.rate = found->bandwidth;
    route.latency = found->latency;
  }
  const bool shared = found != nullptr && found->sharing == Sharing::datacenter;
  const auto name_of = [&](DatacenterId id) { return scenario_.datacenters[index(id)].name; };
  std::vector<ResourceId> items{
      named(shared ? fmt::format("link {}>{}", name_of(found->from), name_of(found->to))
                   : fmt::format("link {}>{}", index(from), index(to)),
            ResourceKind::link)};
  if (scenario_.datacenter_of(from) != scenario_.datacenter_of(to)) {
    const auto add = [&](Rank rank, ResourceKind kind) {
      const auto item = interface(rank, kind);
      if (!item) return;
      const bool narrower = interface_rate(rank, kind) < route.rate;
      items.insert(narrower ? items.begin() : items.end(), *item);  // the narrowest first
      route.rate = std::min(route.rate, interface_rate(rank, kind));
    };
    add(from, ResourceKind::egress);
    add(to, ResourceKind::ingress);
  }
  route.resources = set(items);
  return route;
}

Bandwidth Network::interface_rate(Rank rank, ResourceKind kind) const {
  const NodeInterfaces* nodes = scenario_.interfaces(scenario_.datacenter_of(rank));
  if (nodes == nullptr) return Bandwidth::unlimited();
  return kind == ResourceKind::egress ? nodes->egress : nodes->ingress;
}

std::optional<ResourceId> Network::interface(Rank rank, ResourceKind kind) {
  const NodeInterfaces* nodes = scenario_.interfaces(scenario_.datacenter_of(rank));
  if (nodes == nullptr) return std::nullopt;
  return named(fmt::format("{} {}/{}", kind == ResourceKind::egress ? "egress" : "ingress",
                           scenario_.datacenters[index(nodes->datacenter)].name,
                           place_in_datacenter_[index(rank)] / nodes->gpus),
               kind);
}

RingHop Network::ring(const std::vector<Rank>& ranks) const {
  RingHop ring;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Rank from = ranks[i];
    const Rank to = ranks[(i + 1) % ranks.size()];
    const Link* const hop = link(from, to);
    if (hop != nullptr) {
      ring.rate = std::min(ring.rate, hop->bandwidth);
      ring.latency = std::max(ring.latency, hop->latency);
    }
    if (scenario_.datacenter_of(from) == scenario_.datacenter_of(to)) continue;
    ring.rate = std::min({ring.rate, interface_rate(from, ResourceKind::egress),
                          interface_rate(to, ResourceKind::ingress)});
  }
  return ring;
}

}  // namespace longhaul
