#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/index.hpp"
#include "scenario/scenario.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::report {

/// What messages between the ranks of a scenario hold, of the links, interfaces and ports that have
/// a rate to hold them to. By the scenario alone.
class TraceNetwork {
public:
  struct Limited {
    std::string name;
    Bandwidth rate;
    bool checked = false;  ///< of its user
  };
  /// What messages of an ordered pair of ranks hold.
  struct Way {
    std::vector<std::int32_t> limited;  ///< numbers of TraceNetwork::limited()
    /// Why they, or some of what they hold, cannot be held to a rate: "link west>east, its rate
    /// changes". Empty where nothing is left out.
    std::string left_out;
    bool linked = true;  ///< false: no link leads there
  };

  /// The weather and the jitter of its links are those of the rows: leave them out where the rows
  /// do.
  explicit TraceNetwork(Scenario scenario) : scenario_{std::move(scenario)}, routes_{scenario_} {}
  TraceNetwork(const TraceNetwork&) = delete;
  TraceNetwork& operator=(const TraceNetwork&) = delete;

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  /// Valid as long as the network. Both ranks must be the scenario's.
  [[nodiscard]] const Way& between(Rank from, Rank to);
  /// That a way has named.
  [[nodiscard]] Limited& limited(std::int32_t number) { return limited_[at(number)]; }

private:
  [[nodiscard]] Way make_way(Rank from, Rank to);
  [[nodiscard]] std::int32_t number_of(const schedule::RouteSegment& segment);

  Scenario scenario_;
  schedule::NetworkRoutes routes_;
  std::vector<Limited> limited_;
  std::map<schedule::LinkResource, std::int32_t> numbers_;
  std::unordered_map<std::uint64_t, Way> ways_;  ///< by ranks
};

/// The scenario whose links are as they say, always: what predictions of a run are made for.
[[nodiscard]] Scenario without_weather(Scenario scenario);

}  // namespace longhaul::report
