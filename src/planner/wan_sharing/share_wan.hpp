#pragma once

#include "base/result.hpp"
#include "planner/search/best.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// Temporal sharing under the orders of any schedule whose replicas are equal (Atlas section 4.3
/// has it under its own order alone): in_cells(), with the turns of the rule (turn_search.hpp) that
/// the simulator likes best. The same where there is nothing to share, but for the name. The
/// schedule must be valid. Throws Error where in_cells() refuses, or a link is missing.
[[nodiscard]] Schedule share_wan(const Schedule& schedule, const Scenario& scenario);
/// The same, where a refusal is an answer.
Result<Schedule> try_share_wan(const Schedule& schedule, const Scenario& scenario);

/// The best schedule that generation and search find for DP-cells that share the WAN in time: a
/// search over the rows of every LocalDPRank and the turns on the WAN together. It starts from the
/// schedules that share by themselves (atlas), from every other one under share_wan(), and from
/// find_best() of the links as they are and as pooled_links() has them. Never worse, on the plan
/// with all relays, than any of these that it has time for (with moves: all); `best` of pipelines
/// that send for themselves is among them, so that the result may have cells of 1. Where there is
/// nothing to share: find_best(). The schedule is named shared_name("best"). Refused as
/// try_find_best() is, and for grouped communication, which has no relays.
Result<SearchResult> find_shared_best(const Scenario& scenario, const SearchOptions& options);

}  // namespace longhaul::planner
