#pragma once

#include "scenario/scenario.hpp"

namespace longhaul::test {

/// Two datacenters that split the stages in the middle, with this latency and no transfer times;
/// F = D = W = 100 ns.
[[nodiscard]] inline Scenario two_datacenters(int stages, int microbatches, Duration latency) {
  return spread(uniform_scenario(stages, microbatches), 2, latency, Duration::zero());
}

}  // namespace longhaul::test
