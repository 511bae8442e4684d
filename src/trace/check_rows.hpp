#pragma once

#include <cstdint>

#include "trace/findings.hpp"
#include "trace/timeline.hpp"

namespace longhaul {

/// Longest time and largest size that a row may state: exact in a double, and safe to add up.
inline constexpr std::int64_t kLargestValue = std::int64_t{1} << 53;
/// Clocks and the ends of holds are known no better in what was measured.
inline constexpr std::int64_t kMeasuredSlackNs = 1'000'000;

/// Adds what is wrong with the rows of a timeline: indices outside their tables, times out of
/// order, lanes and resources used against their rules, messages that lack a side. `group` names
/// the timeline in texts; overlaps up to `slack_ns` are forgiven.
void check_rows(const Timeline& timeline, const char* group, std::int64_t slack_ns,
                Findings& findings);

}  // namespace longhaul
