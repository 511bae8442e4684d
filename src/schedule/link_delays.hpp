#pragma once

#include <vector>

#include "scenario/scenario.hpp"
#include "schedule/network_routes.hpp"
#include "schedule/ring_time.hpp"

namespace longhaul {

/// How a message travels from one device to another, in a generator's own estimate.
struct LinkDelay {
  /// One message alone, times the replicas that use the resource at the same moment.
  Duration transfer{};
  Duration latency{};
  /// Indices of what it holds meanwhile, below LinkDelays::resources(): as NetworkRoute::holds.
  std::vector<int> resources;
  bool shared = false;  ///< by more than one ordered pair of devices
};

/// The delays of every ordered pair of devices that a schedule uses. Replicas follow one order, so
/// that a pair counts as slow as it is in the replica where it is slowest; replicas that share a
/// link or an interface send at the same moments, and the last one is waited for. The rules are
/// those of NetworkRoutes; the number that counts is the simulator's.
class LinkDelays {
public:
  explicit LinkDelays(const Scenario& scenario);

  /// Of a message of this size; `from` and `to` differ. A pair without a link takes no time: that
  /// it cannot run is said when it is lowered.
  [[nodiscard]] LinkDelay delay(DeviceId from, DeviceId to, Bytes message);
  /// What the ring of a device's replicas needs for the parameters of a chunk: all-gather or
  /// reduce-scatter. One replica: none.
  [[nodiscard]] Duration ring(DeviceId device, Bytes weights) const;
  /// The same by CrossPipe's estimate for two datacenters (appendix E).
  [[nodiscard]] Duration exchange(DeviceId device, Bytes weights) const;
  /// The same by Atlas' estimate (footnote 1).
  [[nodiscard]] Duration all_reduce_at_rate(DeviceId device, Bytes weights) const;
  /// How many resources the answers named so far.
  [[nodiscard]] int resources() const { return static_cast<int>(held_.size()); }

private:
  [[nodiscard]] RingHop slowest_hop(DeviceId device) const;
  [[nodiscard]] int resource(const Held& held);

  const Scenario& scenario_;
  NetworkRoutes ways_;
  std::vector<Held> held_;  ///< index: resource
};

}  // namespace longhaul
