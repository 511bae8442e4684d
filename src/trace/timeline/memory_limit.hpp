#pragma once

#include <cstdint>
#include <vector>

#include "trace/timeline/iteration_view.hpp"

namespace longhaul::trace {

inline constexpr std::int64_t kNever = INT64_MAX;

/// For each block of each rank: since when a forward after it in the row had its input, but would
/// not have fit into the activation budget in the gap before the block; kNever if there is none.
[[nodiscard]] std::vector<std::vector<std::int64_t>> blocked_forwards_since(
    const IterationView& view, std::int64_t activation_budget_bytes);

/// Activation memory of a rank in the gap before each of its blocks, and after the last.
[[nodiscard]] std::vector<std::int64_t> memory_in_gaps(const IterationView& view, std::size_t rank);
/// Sum that stops at the limits of its type.
[[nodiscard]] std::int64_t saturating_sum(std::int64_t a, std::int64_t b);

}  // namespace longhaul::trace
