#pragma once

#include <span>
#include <string>

#include "planner/bounds/bounds.hpp"
#include "report/record.hpp"

namespace longhaul {

/// The lower bound for schedules with the placement of `schedule` and the memory that it may have:
/// the scenario's budget, or what it takes where that is more. docs/metrics.md.
[[nodiscard]] Bound bound_of(const Schedule& schedule, const Scenario& scenario);

/// The bounds that the gaps of a table refer to: a line for each, after an empty line.
[[nodiscard]] std::string bound_table_text(std::span<const ScheduleRecord> records);

}  // namespace longhaul
