#pragma once

#include <span>
#include <string>

#include "report/record.hpp"

namespace longhaul {

/// [{"resource", "busy_ns", "busy_ratio", "holds"}] in the order of the plan, idle ones too.
[[nodiscard]] nlohmann::ordered_json resources_json(const ScheduleRecord& record);

/// For people: under each schedule, how much of the makespan the busiest links, interfaces and
/// collectives were held; begins with an empty line. Empty where none was held for any time.
[[nodiscard]] std::string resource_table_text(std::span<const ScheduleRecord> records);

}  // namespace longhaul
