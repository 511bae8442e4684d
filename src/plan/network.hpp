#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/ring_time.hpp"

namespace longhaul {

/// How messages of one ordered pair of ranks travel.
struct Route {
  ResourceSetId resources{};
  Bandwidth rate;  ///< the smallest of link and interfaces
  Duration latency{};
};

/// Builds the resources of a plan: one per rank's device, and links and interfaces as messages
/// need them (DESIGN.md section 2).
class Network {
public:
  Network(const Scenario& scenario, Plan& plan);

  /// Of one lane of messages: call once for each. Throws Error where the two lie in different
  /// datacenters with no link between them.
  [[nodiscard]] Route route(Rank from, Rank to);
  /// Of the rank's compute lane: call once for each.
  [[nodiscard]] ResourceSetId device(Rank rank);
  /// The rank's turn in data-parallel communication; the same set each time.
  [[nodiscard]] ResourceSetId collective(Rank rank);
  /// Slowest rate (of links, and of interfaces where a hop crosses datacenters) and largest latency
  /// of a ring over the ranks, in their order.
  [[nodiscard]] RingHop ring(const std::vector<Rank>& ranks) const;

private:
  [[nodiscard]] ResourceId named(const std::string& name, ResourceKind kind);
  [[nodiscard]] ResourceSetId set(const std::vector<ResourceId>& items);
  /// Rate of the node's WAN interface for messages out of (or into) the rank; unlimited without.
  [[nodiscard]] Bandwidth interface_rate(Rank rank, ResourceKind kind) const;
  [[nodiscard]] std::optional<ResourceId> interface(Rank rank, ResourceKind kind);
  [[nodiscard]] const Link* link(Rank from, Rank to) const;

  const Scenario& scenario_;
  Plan& plan_;
  std::unordered_map<std::string, ResourceId> by_name_;
  std::unordered_map<Rank, ResourceSetId> collective_of_;
  std::vector<int> place_in_datacenter_;  ///< how many lower ranks share the rank's datacenter
};

}  // namespace longhaul
