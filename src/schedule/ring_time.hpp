#pragma once

#include "base/units.hpp"

namespace longhaul::schedule {

/// The slowest rate and the largest latency of the hops of a ring.
struct RingHop {
  Bandwidth rate;
  Duration latency{};
};

/// All-gather or reduce-scatter of `size` bytes over a ring: (n-1)/n of them at the slowest rate
/// plus n-1 latencies. An all-reduce is both.
[[nodiscard]] inline Duration ring_time(const RingHop& hop, Bytes size, std::int64_t members) {
  return size * (members - 1) / members / hop.rate + (members - 1) * hop.latency;
}

/// All-reduce at the slowest rate alone, Atlas' estimate (footnote 1): 4 P (N-1) / (N BW), with 2P
/// the bytes of fp16 weights.
[[nodiscard]] inline Duration all_reduce_at_rate(const RingHop& hop, Bytes size,
                                                 std::int64_t members) {
  return size * (2 * (members - 1)) / members / hop.rate;
}

/// All-reduce between two datacenters, CrossPipe's estimate (appendix E): 2 (alpha + 2 N/2 beta),
/// with 2N the bytes of bf16 weights.
[[nodiscard]] inline Duration exchange_time(const RingHop& hop, Bytes size) {
  return 2 * hop.latency + size / hop.rate;
}

}  // namespace longhaul::schedule
