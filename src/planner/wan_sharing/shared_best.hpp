#pragma once

#include "planner/search/best.hpp"

namespace longhaul::planner {

/// The best schedule that generation and search find for DP-cells that share the WAN in time: a
/// search over the rows of every LocalDPRank and the turns on the WAN together. It starts from the
/// schedules that share by themselves (atlas), from every other one under share_wan(), and from
/// find_best() of the links as they are and as pooled_links() has them. Never worse, on the plan
/// with all relays, than any of these; `best` of pipelines that send for themselves is among them,
/// so that the result may have cells of 1. Where there is nothing to share: find_best(). The
/// schedule is named shared_name("best"). Refused as try_find_best() is, and for grouped
/// communication, which has no relays.
Result<SearchResult> find_shared_best(const Scenario& scenario, const SearchOptions& options);

}  // namespace longhaul::planner
