#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/statistics/sample.hpp"
#include "planner/bounds/bounds.hpp"
#include "report/record.hpp"
#include "trace/report/report.hpp"

namespace longhaul::report {

/// The lower bound for schedules with the placement of `schedule` and the memory that it may have:
/// the scenario's budget, or what it takes where that is more. docs/metrics.md.
[[nodiscard]] planner::Bound bound_of(const Schedule& schedule, const Scenario& scenario);

/// The bounds that the gaps of a table refer to: a line for each, after an empty line.
[[nodiscard]] std::string bound_table_text(std::span<const ScheduleRecord> records,
                                           TableWidth width = TableWidth::whole);

/// "1.52 - 1.60", or "- (n < 6)" where there is no interval.
[[nodiscard]] std::string interval_text(const SampleSummary& summary, const TimeScale& scale);

/// [{"resource", "busy_ns", "busy_ratio", "holds"}] in the order of the plan, idle ones too.
[[nodiscard]] nlohmann::ordered_json resources_json(const ScheduleRecord& record);

/// For people: under each schedule, how much of the makespan the busiest links, interfaces and
/// collectives were held; begins with an empty line. Empty where none was held for any time.
[[nodiscard]] std::string resource_table_text(std::span<const ScheduleRecord> records,
                                              TableWidth width = TableWidth::whole);

/// For people: the share of the blocks' time that each operator takes under each schedule, and how
/// many there are; begins with an empty line. Empty where no record has operators.
[[nodiscard]] std::string operator_table_text(std::span<const ScheduleRecord> records,
                                              TableWidth width = TableWidth::whole);

/// Messages of one iteration of a schedule from datacenter to datacenter.
struct TrafficOfSchedule {
  std::string schedule;
  std::vector<trace::Traffic> traffic;
};

/// [{"from", "to", "message_bytes", "data_parallel_bytes"}], inside datacenters too.
[[nodiscard]] nlohmann::ordered_json traffic_json(const std::vector<trace::Traffic>& traffic);

/// For people: bytes between datacenters, of messages and of data parallelism; begins with an empty
/// line. Empty where nothing leaves a datacenter.
[[nodiscard]] std::string traffic_table_text(const std::vector<TrafficOfSchedule>& schedules);

/// How the messages of one iteration of a schedule travelled.
struct LegsOfSchedule {
  std::string schedule;
  trace::IterationReport report;
};

/// {"whole": {"messages", "bytes", "busy_ns"}, "scatter": ...}: each message at its sender.
[[nodiscard]] nlohmann::ordered_json legs_json(const trace::IterationReport& report);

/// For people: messages, bytes and transfer times of each leg, of the schedules that relay;
/// begins with an empty line. Empty where nothing is relayed.
[[nodiscard]] std::string leg_table_text(const std::vector<LegsOfSchedule>& schedules);

}  // namespace longhaul::report
