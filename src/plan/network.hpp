#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"

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
  [[nodiscard]] ResourceSetId device(Rank rank);
  /// The rank's turn in data-parallel communication.
  [[nodiscard]] ResourceSetId collective(Rank rank);
  /// Slowest rate and largest latency of a ring over the ranks, in their order.
  struct Ring {
    Bandwidth rate;
    Duration latency{};
  };
  [[nodiscard]] Ring ring(const std::vector<Rank>& ranks) const;

private:
  [[nodiscard]] ResourceId named(const std::string& name, ResourceKind kind);
  [[nodiscard]] ResourceSetId set(const std::vector<ResourceId>& items);
  void add_interfaces(Rank from, Rank to, Route& route, std::vector<ResourceId>& items);
  [[nodiscard]] const Link* link(Rank from, Rank to) const;

  const Scenario& scenario_;
  Plan& plan_;
  std::unordered_map<std::string, ResourceId> by_name_;
  std::vector<int> place_in_datacenter_;  ///< how many lower ranks share the rank's datacenter
};

}  // namespace longhaul
