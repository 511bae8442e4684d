#pragma once

#include <cstdint>
#include <optional>

#include "planner/orders/order_problem.hpp"
#include "schedule/schedule.hpp"

// Orders from which searches start.
namespace longhaul::planner {

/// The same order with each block whole: where its last part stands, an R directly before its
/// D or B, equal blocks of a row by microbatch. Rows of replica 0 where replicas differ. Valid if
/// `schedule` is, and within the same memory.
/// The solver's start (solver_problem.hpp, in_model) is whole too, but by the rules of its model:
/// an F where its first part stands, rows with an R of their own, microbatches in any order if
/// asked.
[[nodiscard]] Schedule whole_blocks(const Schedule& schedule);

/// One microbatch after the other: the least memory that any schedule of the layout can do with.
[[nodiscard]] Schedule serial_schedule(const Schedule& like, bool recomputes);

/// A schedule of `like`'s layout built block by block, as CrossPipe's greedy does, with priorities
/// and patience that `seed` draws: one start of a search among many. Within memory. nullopt where
/// it runs into a dead end.
[[nodiscard]] std::optional<Schedule> list_schedule(const OrderProblem& problem,
                                                    const Schedule& like, std::uint64_t seed);

}  // namespace longhaul::planner
