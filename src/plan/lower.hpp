#pragma once

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// Arranges a schedule's communication: what each rank does.
///  - decoupled: a lane per role and peer beside the compute lane; receives are posted from the
///    start, in the order of the sends (CrossPipe section 6.3).
///  - grouped: sends and receives stand in the compute lane, as frameworks do: behind a block, its
///    send is grouped with the receive of the next block's input; both sides must have reached
///    their group (rendezvous), and the next block waits for the whole group. Where late receives
///    would deadlock, the receive is posted with the group in which its rank is stuck.
/// Data parallelism (replicas > 1) adds collectives on a lane of their own in both.
/// The schedule must be valid. Throws Error where messages must cross and no link is given.
[[nodiscard]] Plan lower(const Schedule& schedule, const Scenario& scenario,
                         Arrangement arrangement = Arrangement::decoupled);

}  // namespace longhaul
