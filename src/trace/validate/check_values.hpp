#pragma once

#include "trace/validate/check_context.hpp"

namespace longhaul {

/// Longest time and largest size that a row may state: exact in a double, and safe to add up.
inline constexpr std::int64_t kLargestValue = std::int64_t{1} << 53;

/// Checks of a row by itself: indices lie in their tables, ids and times in their ranges. False,
/// and a finding, if other rules cannot rely on it.
[[nodiscard]] bool check_values(const TimelineRow& row, const CheckContext& context,
                                Diagnostics& findings);

}  // namespace longhaul
