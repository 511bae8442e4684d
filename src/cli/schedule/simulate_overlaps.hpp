#pragma once

#include "cli/command/commands.hpp"

namespace longhaul::cli {

/// `simulate --overlap LIST`: a row for each schedule and overlap.
[[nodiscard]] Answer simulate_overlaps(const Options& options);

}  // namespace longhaul::cli
