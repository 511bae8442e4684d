#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenario/scenario.hpp"
#include "trace/file/trace_file.hpp"
#include "trace/report/report.hpp"

namespace longhaul::report {

/// The scenario of a trace, with the overrides that its text has as comments.
[[nodiscard]] Scenario scenario_of_trace(const trace::Trace& trace, const std::string& source);

/// Names of the schedules of either timeline, or `only` where that is not empty (throws Error where
/// the trace does not have it).
[[nodiscard]] std::vector<std::string> traced_schedules(const trace::Trace& trace,
                                                        const std::string& only = {});

/// Reports of all iterations of one schedule in one timeline, in order; empty where it has none.
[[nodiscard]] std::vector<trace::IterationReport> reports_of(const Timeline& timeline,
                                                             const std::string& schedule,
                                                             std::int64_t activation_budget_bytes);

/// The iteration whose makespan is nearest the median (ties: the first). Not of nothing.
[[nodiscard]] int nearest_to_median(const std::vector<trace::IterationReport>& reports);

/// Position in Timeline::schedules.
[[nodiscard]] std::optional<int> position_of(const Timeline& timeline, const std::string& schedule);
/// Numbers of the iterations of a schedule, ascending.
[[nodiscard]] std::vector<int> iteration_numbers(const Timeline& timeline, int schedule);

}  // namespace longhaul::report
