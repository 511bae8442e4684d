#pragma once

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

#include "scenario/scenario.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::testing {

/// A trace that gives latency and bandwidth.
inline std::shared_ptr<const LinkTrace> trace_of(std::vector<LinkState> states) {
  LinkTrace trace;
  trace.name = "t.csv";
  trace.states = std::move(states);
  trace.gives_latency = trace.gives_bandwidth = true;
  return std::make_shared<const LinkTrace>(std::move(trace));
}

/// Two stages in two datacenters, 10 ms apart: messages of 1 MB take 8 ms at 1 Gbps, blocks as
/// `unit` says.
inline Scenario two_sites(int microbatches = 2, Duration unit = 1ms) {
  Scenario scenario = spread(uniform_scenario(2, microbatches, unit), 2, 10ms, 8ms);
  for (Bytes& message : scenario.costs.message) message = Bytes{1'000'000};
  for (Link& link : scenario.links) link.bandwidth = 1_Gbps;
  return scenario;
}

inline bool same(const OpTimes& a, const OpTimes& b) {
  return std::ranges::equal(a, b, [](const OpTime& x, const OpTime& y) {
    return std::tuple{x.ready, x.start, x.end, x.bound_by, x.bound_kind} ==
           std::tuple{y.ready, y.start, y.end, y.bound_by, y.bound_kind};
  });
}

}  // namespace longhaul::testing
