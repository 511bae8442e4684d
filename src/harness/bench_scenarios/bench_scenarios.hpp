#pragma once

#include <cstdint>

#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

/// Scenarios on which the kernels of schedules and searches are timed, and their size.
namespace longhaul::harness {

/// P = 64 stages, M = 1024 microbatches, one datacenter.
[[nodiscard]] Scenario large_scenario();

/// Two datacenters, four blocks' time of latency and half a block's of transfer between them.
/// `sharing`: of their links.
[[nodiscard]] Scenario across_datacenters(int stages, int microbatches, Sharing sharing);

/// Atlas' simulated cluster (section 6.3): 60 stages in five datacenters, 60 microbatches, a
/// message takes as long as four forwards on one node. DP-cells of four pipelines.
[[nodiscard]] Scenario atlas_cluster(int pipelines);

/// Two datacenters, 2P microbatches, F = D = W = 10 ms, a delay of two F; twice the memory, so
/// that ZB-H2 fits.
[[nodiscard]] Scenario two_datacenters(int stages);

/// A DP-cell of three pipelines over two datacenters, whose transfers take three F = 10 ms; 2P
/// microbatches, no gradient sync.
[[nodiscard]] Scenario cell_of_three(int stages);

/// Blocks of all rows.
[[nodiscard]] std::int64_t blocks_of(const Schedule& schedule);

}  // namespace longhaul::harness
