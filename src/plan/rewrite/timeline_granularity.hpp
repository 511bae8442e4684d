#pragma once

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::plan {

/// A timeline with a row for each block: the rows of a block's operators are joined, and ops are
/// numbered anew. Rows of blocks stay what they are. Refused where something overlaps inside a
/// block: an operator begins later than the one before it ends, or something waited for one that is
/// not its block's last.
Result<Timeline> folded(const Timeline& timeline);

/// A timeline with a row for each operator of the blocks of `scenario`, whose times are cut as
/// their lists are; what has been cut already stays what it is. Where chunks lie follows from the
/// rows. Refused where the scenario knows no operators, is not the one of the rows, or has blocks
/// that slow beside messages: what slows a block slows some of its operators.
Result<Timeline> unfolded(const Timeline& timeline, const Scenario& scenario,
                          Granularity below = Granularity::operators);

}  // namespace longhaul::plan
