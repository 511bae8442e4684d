#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "scenario/regions.hpp"

namespace longhaul::planner {

/// How the drawn regions follow each other in the file, and so in rings over the sites: by the
/// shortest way around that nearest neighbours and exchanges find, by round trip; or as drawn.
#define LONGHAUL_SITE_TOURS(X) X(shortest, "shortest") X(drawn, "drawn")
LONGHAUL_LISTED_ENUM(SiteTour, LONGHAUL_SITE_TOURS);

/// Regions of a table in which sites lie, each pair of which was measured one way at least. A
/// seeded draw: regions come in random order, each is taken that goes with all before it, until
/// there are `sites` of them or none is left; sites are divided over them evenly, the first ones
/// one more, those of a region next to each other.
[[nodiscard]] std::vector<std::string> draw_sites(const scenario::RegionTable& table, int sites,
                                                  std::uint64_t seed, SiteTour tour);

/// The round trips from each region to the next one, around, in milliseconds: what a ring over
/// sites waits in two of its rounds.
[[nodiscard]] double round_trips_ms(const scenario::RegionTable& table,
                                    const std::vector<std::string>& around);

}  // namespace longhaul::planner
