#pragma once

#include "base/result.hpp"
#include "plan/lowering/collectives.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// Arranges a schedule's communication: what each rank does.
///  - decoupled: a lane per role and peer beside the compute lane; receives are posted from the
///    start, in the order of the sends (CrossPipe section 6.3).
///  - grouped, as frameworks do: a receive is posted only when its rank reaches it, as a pair with
///    the send of the block before the one that needs it; a transfer begins when both sides
///    are posted (rendezvous), and the block waits for it. Sends do not block: a framework's
///    device runs the next kernel while its copy engine sends. docs/architecture.md, decision 3,
///    has the measurements of CrossPipe that speak for this reading.
/// Data parallelism (replicas > 1) adds collectives in both, as messages on lanes of their own
/// (StepLowering). With a `time_alone` each is one op of each member instead, which takes that long
/// and meanwhile holds all that its messages would: a coarser grain, for searches.
/// Where the schedule shares the WAN in cells (Schedule::cell), messages between datacenters are
/// cut into pieces that the cell's ranks relay: see MessageLeg; a lane wan>PEER has the pieces in
/// the order of the cell's turns. Needs the decoupled arrangement. The schedule must be valid.
/// Throws Error where messages must cross and no link is given, and where a cell's turns are
/// missing or name what is not there.
[[nodiscard]] Plan lower(const Schedule& schedule, const Scenario& scenario,
                         Arrangement arrangement = Arrangement::decoupled,
                         const TimeAlone& time_alone = {});
/// The same, where a schedule that cannot run there is an answer.
Result<Plan> try_lower(const Schedule& schedule, const Scenario& scenario,
                       Arrangement arrangement = Arrangement::decoupled,
                       const TimeAlone& time_alone = {});

/// lower(), at operator granularity with every operator as an op (expand()): for what looks inside
/// blocks. Throws Error where the scenario knows no operators, too.
[[nodiscard]] Plan lower_at(Granularity granularity, const Schedule& schedule,
                            const Scenario& scenario,
                            Arrangement arrangement = Arrangement::decoupled);

/// As lower() (decoupled), but with the WAN of each DP-cell as one link of the rate of all its
/// nodes: a message travels whole, over the resource turns_name(), which serves in order of
/// readiness or in the turns that the schedule states. No rank can do that; searches and the site
/// planner use it, for it is a small plan whose times differ from the true one's by the scatter and
/// gather inside the datacenters and the rounding of pieces alone.
[[nodiscard]] Plan lower_pooled(const Schedule& schedule, const Scenario& scenario,
                                const TimeAlone& time_alone = {});
Result<Plan> try_lower_pooled(const Schedule& schedule, const Scenario& scenario,
                              const TimeAlone& time_alone = {});

}  // namespace longhaul::plan
