#pragma once

#include "scenario/scenario.hpp"
#include "schedule/link_delays.hpp"

namespace longhaul::families {

/// What data parallelism adds around the blocks of a chunk, all replicas together.
struct SyncTimes {
  Duration gather{};     ///< of its weights, in front of its first F
  Duration reduction{};  ///< of its gradients, behind its last backward block
};

[[nodiscard]] inline SyncTimes sync_times(const Scenario& scenario, const LinkDelays& links,
                                          DeviceId device, Bytes weights) {
  switch (scenario.parallel.gradient_sync) {
    case GradientSync::none: break;
    case GradientSync::all_reduce: return {{}, 2 * links.ring(device, weights)};
    case GradientSync::zero1: {
      const Duration once = links.ring(device, weights);
      return {once, once};
    }
    case GradientSync::two_datacenter: return {{}, links.exchange(device, weights)};
    case GradientSync::ring_rate: return {{}, links.all_reduce_at_rate(device, weights)};
  }
  return {};
}

}  // namespace longhaul::families
