#pragma once

#include <string>

#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::planner {

/// A time below which an iteration of that sharding cannot end, whatever the order of its
/// operations and communications and whatever pieces, algorithms and lanes they have.
struct OverlapBound {
  Duration lower_bound{};
  std::string reason;  ///< "work of stage 0", "13.5e9 bytes out of rank 0 at 1 GB/s"
};

/// The largest of: the operations of a stage after the forwards of the stages before it; what must
/// cross a cut (around a rank, a node, a set of datacenters) each way at the rate of all that
/// crosses it; the weights of the first units, gathered into a rank or a node, and all operations
/// that need what follows from them; what all ranks together must send at the rate of all their
/// ports. Of the plan the
/// sizes of its operations and communications count, not what an overlap decided. A message's time
/// is rounded to the nanosecond, so that many tiny ones may be half a nanosecond each below it.
[[nodiscard]] OverlapBound bound_of_overlaps(const collective::IterationPlan& plan);

}  // namespace longhaul::planner
