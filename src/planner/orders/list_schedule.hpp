#pragma once

#include <cstdint>
#include <optional>

#include "planner/orders/order_problem.hpp"

namespace longhaul::planner {

/// A schedule of `like`'s layout built block by block, as CrossPipe's greedy does, with priorities
/// and patience that `seed` draws: one start of a search among many. Within memory. nullopt where
/// it runs into a dead end.
[[nodiscard]] std::optional<Schedule> list_schedule(const OrderProblem& problem,
                                                    const Schedule& like, std::uint64_t seed);

}  // namespace longhaul::planner
