#pragma once

#include <functional>
#include <vector>

#include "planner/search/best.hpp"

namespace longhaul::planner {

/// Makes the scenario with so many layers on each stage.
using WithLayers = std::function<Scenario(const std::vector<int>& layers)>;

/// Layers of each stage, and the best schedule found with them.
struct Assignment {
  std::vector<int> layers;
  Scenario scenario;  ///< with these layers and the start's activation budget in bytes
  SearchResult found;
};

struct AssignedLayers {
  Assignment best;
  int tried = 0;  ///< assignments for which a schedule was looked for, the start among them
};

/// Moves layers from stage to stage, one at a time, as long as `best` finds a shorter iteration;
/// of all moves the one that helps most comes first. `start` is as a rule what balances times
/// (scenario/model_costs.hpp): with delays between datacenters the shortest longest stage is not
/// always the shortest iteration. Every assignment may hold as many bytes of activations as the
/// start, and none is taken that does not fit into the devices' capacities. `search` bounds each
/// look.
[[nodiscard]] AssignedLayers assign_layers(const WithLayers& with_layers,
                                           const std::vector<int>& start,
                                           const SearchOptions& search);

}  // namespace longhaul::planner
