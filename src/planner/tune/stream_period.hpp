#pragma once

#include <optional>
#include <span>

#include "plan/plan.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {

/// When the first block of an iteration begins, of all ranks.
[[nodiscard]] Duration first_block(const Plan& plan, const OpResults& results);

/// Mean time between the starts of iterations in the second half of a stream; nullopt: of one.
[[nodiscard]] std::optional<Duration> period_of(std::span<const Duration> iteration_starts);

/// Bytes of all messages of the plan between datacenters, all ways together.
[[nodiscard]] double bytes_between_datacenters(const Plan& plan);

/// Of so many iterations, at least two, without a barrier between them, in calm weather.
[[nodiscard]] Duration stream_period(const Plan& plan, int iterations);

}  // namespace longhaul::planner
