#pragma once

#include <optional>

#include "harness/placement/placement.hpp"
#include "harness/session/pipeline_input.hpp"

namespace longhaul::harness {

/// Collective: makes the ranks anew where processes have to play others than MPI numbered, so that
/// those of a datacenter lie on whole hosts. Rank 0 prints warnings; an allocation that does not
/// fit is an CollectiveError. `input` stays as it is: it is the same on all ranks.
void place_ranks(std::optional<engine::Ranks>& ranks, const PipelineInput& input,
                 const PipelineSettings& settings);

/// Collective: rank 0 prints who is where (--print-map), as a table or as JSON: rank, host,
/// datacenter, stage, replica, device, network interface, cores.
void print_map(const engine::Ranks& ranks, const Scenario& scenario, bool as_json);

}  // namespace longhaul::harness
