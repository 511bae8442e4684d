#pragma once

#include <optional>
#include <string>

#include "collective/chunk_gathers/pytorch_comms.hpp"
#include "planner/overlap/overlap_bound.hpp"

namespace longhaul::planner {

/// Gathers of whole chunks, and how an iteration with them does, simulated.
struct PlacedGathers {
  collective::ChunkGathers gathers;  ///< empty: the scenario shards no weights
  collective::BlockSpans spans;
  Duration makespan{};
  Bytes peak;  ///< the most that a rank holds
  bool fits = true;
  std::size_t evaluated = 0;  ///< iterations simulated
  /// With the chunks gathered that PyTorch's lowering keeps active (gathers_of_next(schedule, 3)).
  Duration usual{};
  bool usual_fits = true;
  OverlapBound bound;
};

/// Places the gathers of a pipeline over sharded chunks by simulation, within memory: from each
/// number of active chunks, then gather by gather: earlier, later, kept until the next use, or
/// given up between two. Never slower than PyTorch's lowering where that fits. Refused as
/// collective::with_chunk_gathers() is.
[[nodiscard]] Result<PlacedGathers> place_gathers(const Schedule& schedule,
                                                  const Scenario& scenario, Arrangement arrangement,
                                                  std::size_t evaluations = 400);

}  // namespace longhaul::planner
