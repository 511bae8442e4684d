#pragma once

#include "base/result.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule {

/// Is there a WAN to take turns on: more than one pipeline in a DP-cell, and neighbouring stages in
/// different datacenters?
[[nodiscard]] bool shares_wan(const Scenario& scenario);

/// The links as one pipeline of a DP-cell has them while it is its turn: with all nodes of the cell
/// (Atlas section 4.3), so that a message takes a C-th of its time. Generators that know times plan
/// on it; that the others of the cell want their turn too is left to the turns.
[[nodiscard]] Scenario pooled_links(const Scenario& scenario);

/// The same order in cells of cell_size(scenario) pipelines, with a row for each (replica, device),
/// named shared_name(). It has no turns yet. Where there is nothing to share, only the name
/// changes. Refused where its replicas share already or follow orders of their own.
Result<Schedule> in_cells(const Schedule& schedule, const Scenario& scenario);

/// Gives every cell and pair of devices in different datacenters its turns: messages microbatch by
/// microbatch, in each by LocalDPRank. The order of every replica's own messages is that of its
/// rows.
void take_turns_evenly(Schedule& schedule, const Scenario& scenario);

}  // namespace longhaul::schedule
