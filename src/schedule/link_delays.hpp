#pragma once

#include <vector>

#include "scenario/scenario.hpp"
#include "schedule/network_routes.hpp"
#include "schedule/ring_time.hpp"

namespace longhaul::schedule {

/// How a message travels from one device to another, in a generator's own estimate.
struct LinkDelay {
  /// One message alone, times the replicas that use the resource at the same moment.
  Duration transfer{};
  Duration latency{};
  /// Indices of what it holds meanwhile, below LinkDelays::resources(): as NetworkRoute::segments.
  std::vector<int> resources;
  bool shared = false;  ///< by more than one ordered pair of devices
};

/// Times that data parallelism adds around the blocks of a chunk, all replicas together.
struct SyncTimes {
  Duration gather{};     ///< of its weights, before its first F
  Duration reduction{};  ///< of its gradients, after its last backward block
};

/// The delays of every ordered pair of devices that a schedule uses. Replicas follow one order, so
/// that a pair counts as slow as it is in the replica where it is slowest; replicas that share a
/// link or an interface send at the same moments, and the last one is waited for. The rules are
/// those of NetworkRoutes; the number that counts is the simulator's.
class LinkDelays {
public:
  explicit LinkDelays(const Scenario& scenario);

  /// Delay of a message of this size. Precondition: `from` and `to` differ. A pair without a link
  /// takes no time: lower() reports that it cannot run.
  [[nodiscard]] LinkDelay delay(DeviceId from, DeviceId to, Bytes message);
  /// Time of the ring of a device's replicas for the parameters of a chunk: all-gather or
  /// reduce-scatter. One replica: none.
  [[nodiscard]] Duration ring(DeviceId device, Bytes weights) const;
  /// The same by CrossPipe's estimate for two datacenters (appendix E).
  [[nodiscard]] Duration exchange(DeviceId device, Bytes weights) const;
  /// Of a chunk whose weights are sharded over Parallel::shard replicas.
  [[nodiscard]] SyncTimes sharded(DeviceId device, Bytes weights) const;
  /// The ring's by Atlas' estimate (footnote 1).
  [[nodiscard]] Duration all_reduce_at_rate(DeviceId device, Bytes weights) const;
  /// How many resources the answers named so far.
  [[nodiscard]] int resources() const { return static_cast<int>(held_.size()); }

private:
  [[nodiscard]] RingHop slowest_hop(DeviceId device, const std::vector<ReplicaId>& ring) const;
  [[nodiscard]] std::vector<ReplicaId> all_replicas() const;
  [[nodiscard]] Duration ring_of(DeviceId device, Bytes weights,
                                 const std::vector<ReplicaId>& members) const;
  [[nodiscard]] int resource(const LinkResource& held);

  const Scenario& scenario_;
  NetworkRoutes routes_;
  std::vector<LinkResource> held_;  ///< index: resource
};

[[nodiscard]] inline SyncTimes sync_times(const Scenario& scenario, const LinkDelays& links,
                                          DeviceId device, Bytes weights) {
  switch (scenario.parallel.gradient_sync) {
    case GradientSync::none:
    case GradientSync::compressed: break;  // beside the blocks, in iterations that follow
    case GradientSync::all_reduce: return {{}, 2 * links.ring(device, weights)};
    case GradientSync::zero1:
    case GradientSync::zero2: {
      const Duration once = links.ring(device, weights);
      return {once, once};
    }
    case GradientSync::two_datacenter: return {{}, links.exchange(device, weights)};
    case GradientSync::ring_rate: return {{}, links.all_reduce_at_rate(device, weights)};
    case GradientSync::zero3: return links.sharded(device, weights);
  }
  return {};
}

}  // namespace longhaul::schedule
