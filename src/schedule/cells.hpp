#pragma once

#include <optional>

#include "base/result.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule {

/// Largest DP-cell: a message is cut into a piece for each pipeline (Op::pieces).
inline constexpr int kMostPipelinesOfACell = 255;

/// C, pipelines of a DP-cell: parallel.cell where it is given; otherwise the transfer of one
/// message at the rate of one node over the forward time of its sender, rounded up, the largest of
/// all boundaries between datacenters (Atlas section 4.4, footnote 3): with so many nodes a
/// transfer takes no longer than the computation. At most parallel.replicas, at most 255; 1 where
/// no boundary crosses datacenters.
[[nodiscard]] int cell_size(const Scenario& scenario);

/// Why its ranks cannot relay for each other: those of one device of a cell lie in several
/// datacenters, or a cell has more pipelines than there may be. nullopt: they can.
[[nodiscard]] std::optional<Refusal> why_no_cells(const Schedule& schedule,
                                                  const Scenario& scenario);

}  // namespace longhaul::schedule
