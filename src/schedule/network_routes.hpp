#pragma once

#include <compare>
#include <string>
#include <vector>

#include "base/vocabulary.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::schedule {

/// A resource that a message may hold while it is transferred. The two numbers: the ranks of a
/// link, (from, to), the datacenters of a shared link or an aggregate, the datacenter and the node
/// of an interface, the rank of a port and 0.
struct LinkResource {
  ResourceKind kind = ResourceKind::link;
  int first = 0, second = 0;
  friend auto operator<=>(const LinkResource&, const LinkResource&) = default;
};

/// "link 3>4", "link west>east", "egress west/0", "port-out 3": its name in plans and traces.
[[nodiscard]] std::string name_of(const LinkResource& resource, const Scenario& scenario);

/// A link or an interface on a route.
struct RouteSegment {
  LinkResource resource;
  Bandwidth rate;    ///< of the resource alone
  int capacity = 1;  ///< so many messages hold it at a time
};

/// How messages of one ordered pair of ranks travel.
struct NetworkRoute {
  Bandwidth rate;  ///< the smallest of all
  Duration latency{};
  std::vector<RouteSegment>
      segments;        ///< the link, then its aggregate, then interfaces: outwards, inwards
  bool linked = true;  ///< false: the two lie in different datacenters without a link
};

/// The one place that knows which links and interfaces lie between two ranks. The simulator's
/// resources (plan/network/network.hpp) and the generators' estimates (LinkDelays) are made of it.
///
///     const NetworkRoutes routes{scenario};
///     const NetworkRoute route = routes.between(Rank{3}, Rank{4});
///     const Duration transfer = 64_MiB / route.rate + route.latency;
class NetworkRoutes {
public:
  explicit NetworkRoutes(const Scenario& scenario);

  [[nodiscard]] NetworkRoute between(Rank from, Rank to) const;
  /// A datacenter without [[node]] has nodes of one rank.
  [[nodiscard]] NetworkLevel level(Rank from, Rank to) const;
  /// Number of its node in its datacenter; without [[node]] each rank is one.
  [[nodiscard]] int node_of(Rank rank) const;
  /// Which node of its datacenter the rank lies in, if there are `gpus` ranks in each.
  [[nodiscard]] int node(Rank rank, int gpus) const { return place_[index(rank)] / gpus; }

private:
  void cross(Rank from, Rank to, NetworkRoute& route) const;
  void stay(Rank from, Rank to, NetworkRoute& route) const;
  static void stay_in_node(Rank from, Rank to, const NodeInterfaces& nodes, NetworkRoute& route);

  const Scenario& scenario_;
  std::vector<int> place_;  ///< how many lower ranks share the rank's datacenter
};

}  // namespace longhaul::schedule
