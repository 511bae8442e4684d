#pragma once

#include "base/result.hpp"
#include "planner/sites/sites.hpp"

namespace longhaul::planner {

/// The link between neighbours in the placement that is missing; nullopt where all are there.
[[nodiscard]] std::optional<Refusal> why_unlinked(const GpuInventory& inventory,
                                                  const StagePlacement& placement);

/// The scenario with one DP-cell of `pipelines` pipelines placed as the layout says, alone,
/// without data parallelism: PP of algorithm 1. It has 1/D of resources that all D cells share (an
/// aggregate of a pair of datacenters, a link with sharing = "datacenter"). Refused where
/// neighbours in the placement have no link.
Result<Scenario> cell_scenario(const GpuInventory& inventory, const SiteLayout& layout,
                               int pipelines);

/// The scenario with all pipelines of the layout placed: what `simulate` and ranks run. Throws
/// Error where neighbours have no link.
[[nodiscard]] Scenario placed_scenario(const GpuInventory& inventory, const SiteLayout& layout);

/// All-reduce of the gradients of a stage among so many replicas inside the datacenter: a ring at
/// the rate of the nodes' interfaces inside it (or of its own link), by the scenario's
/// gradient_sync; zero1 is a reduce-scatter and an all-gather, as long together.
[[nodiscard]] Duration all_reduce_inside(const GpuInventory& inventory, DatacenterId where,
                                         StageId stage, int replicas);
/// The longest of all stages, which synchronise at the same time.
[[nodiscard]] Duration all_reduce_time(const GpuInventory& inventory, const SiteLayout& layout);

}  // namespace longhaul::planner
