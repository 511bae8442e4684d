#pragma once

#include "collective/iteration/iteration_plan.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::collective {

// Passes from plan to plan: each decides queues, the order of issue and what waits for what.

/// Nothing overlaps on a rank: a collective begins when the operation before it has ended, and the
/// operation after it waits for its end. A gather stands before the first operation that needs it,
/// a sum after the last whose result it takes.
[[nodiscard]] IterationPlan serialized(IterationPlan plan);

/// Each collective begins as soon as what it moves is there, those of a traffic one after the
/// other.
[[nodiscard]] IterationPlan eager(IterationPlan plan);

/// In each block with them the dgrads of all operators run ahead of the wgrads, and what goes to
/// the stage before leaves with the last dgrad (out-of-order backward propagation).
[[nodiscard]] IterationPlan dgrads_first(IterationPlan plan);

/// Each all-reduce of gradients is a reduce-scatter and, when that has ended, an all-gather, which
/// is the next in the order of issue (table 2).
[[nodiscard]] IterationPlan sums_in_two(IterationPlan plan);

/// Communications of a kind go to so many queues of their own, by turns.
[[nodiscard]] IterationPlan on_lanes(IterationPlan plan, Traffic traffic, int lanes);

/// As serialized(), but each collective and the one matrix product that makes what it moves, or
/// that needs it first, are cut into pieces which overlap: `pieces`, or one for each member of the
/// collective (0).
[[nodiscard]] IterationPlan in_pieces(IterationPlan plan, int pieces);

/// Backwards gather from the ranks of a node, which hold a second copy of the weights together
/// (ZeRO++ hpZ).
[[nodiscard]] IterationPlan backward_from_node(IterationPlan plan);

/// Gathers and scatters on lanes of their own, or on one.
enum class ShardedLanes : std::uint8_t { one, apart };
/// Gathers as many units ahead as `parallel.sharding.prefetch` says: the gather of a unit is issued
/// when the unit that is used so many before it starts. A scatter is issued when its last wgrad
/// ends, ahead of a gather that is issued at that moment.
[[nodiscard]] IterationPlan prefetched(IterationPlan plan, ShardedLanes lanes);

/// The schedule with all microbatches of a chunk one after the other: forwards chunk by chunk, then
/// backwards chunk by chunk from the last on (Lamy-Poirier 2023), on the same devices. Valid for
/// any placement of one copy of the model.
[[nodiscard]] Schedule breadth_first(Schedule schedule);

}  // namespace longhaul::collective
