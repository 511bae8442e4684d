#pragma once

#include <cstdint>
#include <string_view>

#include "base/listed_enum.hpp"

namespace longhaul::schedule {

/// Where chunks lie (CrossPipe figure 5): UD has one per device; a loop puts chunk c on device
/// c mod P; a wave folds 2P chunks into a V, so that device r holds chunks r and 2P-1-r; BD runs
/// two copies of the model in opposite directions, so that device r holds stage r of the one and
/// stage P-1-r of the other.
/// The names are the choices of --placement.
#define LONGHAUL_PLACEMENTS(X) \
  X(unidirectional, "ud") X(loop, "loop") X(wave, "wave") X(bidirectional, "bd")
LONGHAUL_LISTED_ENUM(Placement, LONGHAUL_PLACEMENTS);

/// Throws Error with the nearest known name.
[[nodiscard]] Placement parse_placement(std::string_view text);

}  // namespace longhaul::schedule
