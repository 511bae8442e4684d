#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "plan/steps/collective.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::planner {

/// Bytes that leave one side of a cut, and that come in.
struct Crossing {
  Bytes out, in;
};
/// Those of the kind that cross the cut, whatever the algorithm. `inside`: by member.
[[nodiscard]] Crossing bytes_across(const plan::Collective& collective,
                                    const std::vector<bool>& inside);

/// Sum of the rates of resources that messages across a cut hold; unlimited where one holds none.
class Capacity {
public:
  void add(const schedule::NetworkRoute& route, std::initializer_list<ResourceKind> kinds);
  [[nodiscard]] double rate() const;  ///< bits per second

private:
  std::map<schedule::LinkResource, double> rates_;
  bool unlimited_ = false;
};

/// One way across a cut: how fast at most, and after what latency at least.
class OneWay {
public:
  /// A pair of ranks on its two sides.
  void add(const schedule::NetworkRoute& route, std::pair<int, int> datacenters);
  [[nodiscard]] Bandwidth rate() const;
  /// Rounded down: a bound may be too low, never too high.
  [[nodiscard]] Duration time(Bytes size) const;

private:
  struct PairCapacity {
    Capacity links, aggregates, senders, receivers;
  };
  Capacity senders_, receivers_;
  std::map<std::pair<int, int>, PairCapacity> pairs_;  ///< by datacenters
  std::optional<Duration> latency_;
};

}  // namespace longhaul::planner
