#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/network_routes.hpp"
#include "schedule/ring_time.hpp"

namespace longhaul::plan {

/// How messages of one ordered pair of ranks travel.
struct Route {
  ResourceSetId resources{};
  Bandwidth rate;  ///< the smallest of link and interfaces
  Duration latency{};
};

struct RankPair {
  Rank from{}, to{};
};

/// Builds the resources of a plan: one per rank's device, and links and interfaces as messages
/// need them.
class Network {
public:
  Network(const Scenario& scenario, Plan& plan);
  /// Of a plan that has resources: those of the same names are kept.
  [[nodiscard]] static Network extending(const Scenario& scenario, Plan& plan);

  [[nodiscard]] RankInfo info(Rank rank) const;
  /// Resources of one lane of messages: call once for each. Where the two lie in different
  /// datacenters with no link between them there is a missing_link().
  [[nodiscard]] Route route(Rank from, Rank to);
  /// Resources of one lane of messages that all of these take together, a piece each: call once for
  /// each. As one exclusion `name`, beside the interfaces and shared links that they hold, at the
  /// sum of their rates; what several of them share counts once.
  [[nodiscard]] Route pool(const std::string& name, const std::vector<RankPair>& pairs);
  /// Resources of the rank's compute lane: call once for each.
  [[nodiscard]] ResourceSetId device(Rank rank);
  /// The rank's turn in data-parallel communication; the same set each time.
  [[nodiscard]] ResourceSetId collective(Rank rank);
  /// What a collective that is one op of each member holds: what its messages do, or where these
  /// hold nothing the member's turn in data-parallel communication.
  [[nodiscard]] ResourceSetId all_of(const std::vector<ResourceId>& held, Rank member);
  /// What messages of these pairs hold, ascending.
  [[nodiscard]] std::vector<ResourceId> held_between(const std::vector<RankPair>& pairs);
  /// Slowest rate of links and interfaces and largest latency of a ring over the ranks, in their
  /// order.
  [[nodiscard]] schedule::RingHop ring(const std::vector<Rank>& ranks);
  /// The first one that a route, pool or ring needed; with it the plan cannot be made.
  [[nodiscard]] const std::optional<Refusal>& missing_link() const { return missing_link_; }

private:
  enum class Extending : std::uint8_t { resources };
  Network(const Scenario& scenario, Plan& plan, Extending);
  [[nodiscard]] ResourceId add(std::string name, ResourceKind kind, int capacity = 1);
  [[nodiscard]] ResourceId held(const schedule::RouteSegment& segment);
  [[nodiscard]] ResourceSetId set(const std::vector<ResourceId>& items);
  /// Notes a missing_link().
  [[nodiscard]] schedule::NetworkRoute checked_route(Rank from, Rank to);

  const Scenario& scenario_;
  Plan& plan_;
  schedule::NetworkRoutes routes_;
  std::map<schedule::LinkResource, ResourceId> by_held_;
  std::unordered_map<std::string, ResourceId> known_;  ///< of the plan that is extended, by name
  std::map<std::string, ResourceId> pools_;
  std::unordered_map<Rank, ResourceSetId> collective_of_;
  std::optional<Refusal> missing_link_;
};

}  // namespace longhaul::plan
