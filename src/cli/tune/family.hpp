#pragma once

#include "base/units.hpp"
#include "cli/command/commands.hpp"

namespace longhaul::cli {

/// `longhaul tune --family`: the time to a loss of each method of kept curves under the scenario's
/// links, and the one to take. `bandwidths`: of the links between datacenters; none: their own.
[[nodiscard]] Answer tune_family(const Options& options, const std::vector<Bandwidth>& bandwidths);

/// The loss of --target or of the scenario. Throws Error where neither is one.
[[nodiscard]] double target_loss(const TuneArguments& typed, const Scenario& scenario);

}  // namespace longhaul::cli
