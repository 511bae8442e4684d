#pragma once

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// Arranges a schedule's communication: what each rank does.
///  - decoupled: a lane per role and peer beside the compute lane; receives are posted from the
///    start, in the order of the sends (CrossPipe section 6.3).
///  - grouped, as frameworks do: a receive is posted only when its rank comes to it, as a pair with
///    the send of the block in front of the one that needs it; a transfer begins when both sides
///    are posted (rendezvous), and the block waits for it. Sends do not block: a framework's
///    device runs the next kernel while its copy engine sends. docs/architecture.md, decision 3,
///    has the measurements of CrossPipe that speak for this reading.
/// Data parallelism (replicas > 1) adds collectives on a lane of their own in both.
/// The schedule must be valid. Throws Error where messages must cross and no link is given.
[[nodiscard]] Plan lower(const Schedule& schedule, const Scenario& scenario,
                         Arrangement arrangement = Arrangement::decoupled);

}  // namespace longhaul
