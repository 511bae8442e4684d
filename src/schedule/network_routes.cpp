#include "schedule/network_routes.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/index.hpp"

namespace longhaul::schedule {
namespace {

int number(DatacenterId datacenter) { return static_cast<int>(index(datacenter)); }

void add(NetworkRoute& route, const RouteSegment& segment) {
  route.rate = std::min(route.rate, segment.rate);
  route.segments.push_back(segment);
}

/// How many messages, each at `rate`, the aggregate of a link carries at a time.
int messages_at_a_time(Bandwidth aggregate, Bandwidth rate) {
  const double count = aggregate.bits_per_second() / rate.bits_per_second();
  constexpr double kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp(count, 1.0, kMost));
}

}  // namespace

std::string name_of(const LinkResource& resource, const Scenario& scenario) {
  const auto datacenter = [&](int id) -> const std::string& {
    return scenario.datacenters[at(id)].name;
  };
  const auto of_node = [&] {
    return fmt::format("{} {}/{}", to_string(resource.kind), datacenter(resource.first),
                       resource.second);
  };
  const auto of_pair = [&](const char* kind) {
    return fmt::format("{} {}>{}", kind, datacenter(resource.first), datacenter(resource.second));
  };
  switch (resource.kind) {
    case ResourceKind::link: return fmt::format("link {}>{}", resource.first, resource.second);
    case ResourceKind::shared_link: return of_pair("link");
    case ResourceKind::aggregate: return of_pair("aggregate");
    case ResourceKind::egress:
    case ResourceKind::ingress:
    case ResourceKind::internal_out:
    case ResourceKind::internal_in: return of_node();
    case ResourceKind::port_out:
    case ResourceKind::port_in:
      return fmt::format("{} {}", to_string(resource.kind), resource.first);
    case ResourceKind::device:
    case ResourceKind::collective:
    case ResourceKind::workers:
    case ResourceKind::copy_engine: break;  // no message holds them
  }
  return "?";
}

NetworkRoutes::NetworkRoutes(const Scenario& scenario) : scenario_{scenario} {
  std::vector<int> seen(scenario.datacenters.size());
  for (const DatacenterId datacenter : scenario.placement)
    place_.push_back(seen[index(datacenter)]++);
}

NetworkRoute NetworkRoutes::between(Rank from, Rank to) const {
  const DatacenterId a = scenario_.datacenter_of(from);
  const DatacenterId b = scenario_.datacenter_of(to);
  const Link* const link = scenario_.link(a, b);
  NetworkRoute route;
  route.linked = link != nullptr || a == b;
  if (link != nullptr) route.latency = link->latency;
  const Bandwidth rate = link == nullptr ? Bandwidth::unlimited() : link->bandwidth;
  if (link != nullptr && link->sharing == Sharing::datacenter) {
    add(route, {{ResourceKind::shared_link, number(a), number(b)}, rate});
  } else {
    add(route,
        {{ResourceKind::link, static_cast<int>(index(from)), static_cast<int>(index(to))}, rate});
  }
  if (a == b) {
    stay(from, to, route);
  } else {
    cross(from, to, route);
  }
  if (link != nullptr && !link->aggregate.is_unlimited()) {
    const RouteSegment all{{ResourceKind::aggregate, number(a), number(b)},
                           link->aggregate,
                           messages_at_a_time(link->aggregate, route.rate)};
    route.segments.insert(route.segments.begin() + 1, all);
    route.rate = std::min(route.rate, link->aggregate);
  }
  return route;
}

void NetworkRoutes::cross(Rank from, Rank to, NetworkRoute& route) const {
  if (const NodeInterfaces* nodes = scenario_.interfaces(scenario_.datacenter_of(from)))
    add(route, {{ResourceKind::egress, number(nodes->datacenter), node(from, nodes->gpus)},
                nodes->egress});
  if (const NodeInterfaces* nodes = scenario_.interfaces(scenario_.datacenter_of(to)))
    add(route, {{ResourceKind::ingress, number(nodes->datacenter), node(to, nodes->gpus)},
                nodes->ingress});
}

void NetworkRoutes::stay(Rank from, Rank to, NetworkRoute& route) const {
  const NodeInterfaces* const nodes = scenario_.interfaces(scenario_.datacenter_of(from));
  if (nodes == nullptr) return;
  const int out = node(from, nodes->gpus);
  const int in = node(to, nodes->gpus);
  if (out == in) return stay_in_node(from, to, *nodes, route);
  if (nodes->internal.is_unlimited()) return;
  route.latency += nodes->internal_latency;
  add(route, {{ResourceKind::internal_out, number(nodes->datacenter), out}, nodes->internal});
  add(route, {{ResourceKind::internal_in, number(nodes->datacenter), in}, nodes->internal});
}

void NetworkRoutes::stay_in_node(Rank from, Rank to, const NodeInterfaces& nodes,
                                 NetworkRoute& route) {
  if (nodes.device.is_unlimited()) return;
  route.latency += nodes.device_latency;
  add(route, {{ResourceKind::port_out, static_cast<int>(index(from)), 0}, nodes.device});
  add(route, {{ResourceKind::port_in, static_cast<int>(index(to)), 0}, nodes.device});
}

NetworkLevel NetworkRoutes::level(Rank from, Rank to) const {
  const DatacenterId datacenter = scenario_.datacenter_of(from);
  if (datacenter != scenario_.datacenter_of(to)) return NetworkLevel::wan;
  return node_of(from) == node_of(to) ? NetworkLevel::node : NetworkLevel::datacenter;
}

int NetworkRoutes::node_of(Rank rank) const {
  const NodeInterfaces* const nodes = scenario_.interfaces(scenario_.datacenter_of(rank));
  return node(rank, nodes == nullptr ? 1 : nodes->gpus);
}

}  // namespace longhaul::schedule
