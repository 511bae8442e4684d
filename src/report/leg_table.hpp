#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "trace/report/report.hpp"

namespace longhaul {

/// How the messages of one iteration of a schedule travelled.
struct LegsOfSchedule {
  std::string schedule;
  IterationReport report;
};

/// {"whole": {"messages", "bytes", "busy_ns"}, "scatter": ...}: each message at its sender.
[[nodiscard]] nlohmann::ordered_json legs_json(const IterationReport& report);

/// For people: messages, bytes and transfer times of each leg, of the schedules that relay;
/// begins with an empty line. Empty where nothing is relayed.
[[nodiscard]] std::string leg_table_text(const std::vector<LegsOfSchedule>& schedules);

}  // namespace longhaul
