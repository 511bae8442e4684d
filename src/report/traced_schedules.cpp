#include "report/traced_schedules.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/statistics/sample.hpp"
#include "base/suggest.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::report {

Scenario scenario_of_trace(const trace::Trace& trace, const std::string& source) {
  std::vector<std::string> overrides;
  std::istringstream lines{trace.info.scenario};
  constexpr std::string_view kOverride = "# --set ";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(kOverride)) overrides.push_back(line.substr(kOverride.size()));
  return scenario::parse_scenario(trace.info.scenario, source + ": scenario", overrides);
}

std::vector<std::string> traced_schedules(const trace::Trace& trace, const std::string& only) {
  std::vector<std::string> names = trace.predicted.schedules;
  for (const std::string& name : trace.measured.schedules) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (only.empty()) return names;
  if (std::find(names.begin(), names.end(), only) == names.end())
    fail("--schedule: the trace holds no schedule \"{}\". {}", only, suggestion(only, names));
  return {only};
}

int nearest_to_median(const std::vector<trace::IterationReport>& reports) {
  std::vector<double> makespans;
  for (const auto& report : reports) makespans.push_back(static_cast<double>(report.makespan_ns));
  const double median = summarize(makespans).median;
  const auto nearest = std::min_element(
      makespans.begin(), makespans.end(),
      [&](double a, double b) { return std::fabs(a - median) < std::fabs(b - median); });
  return reports[at(nearest - makespans.begin())].iteration;
}

std::optional<int> position_of(const Timeline& timeline, const std::string& schedule) {
  const auto& names = timeline.schedules;
  const auto found = std::find(names.begin(), names.end(), schedule);
  if (found == names.end()) return std::nullopt;
  return static_cast<int>(found - names.begin());
}

std::vector<int> iteration_numbers(const Timeline& timeline, int schedule) {
  std::vector<int> iterations;
  for (const TimelineRow& row : timeline.rows) {
    if (row.schedule != schedule) continue;
    if (iterations.empty() || iterations.back() != row.iteration)
      iterations.push_back(row.iteration);
  }
  std::sort(iterations.begin(), iterations.end());
  iterations.erase(std::unique(iterations.begin(), iterations.end()), iterations.end());
  return iterations;
}

std::vector<trace::IterationReport> reports_of(const Timeline& timeline,
                                               const std::string& schedule,
                                               std::int64_t activation_budget_bytes) {
  std::vector<trace::IterationReport> reports;
  const auto position = position_of(timeline, schedule);
  if (!position) return reports;
  for (const int iteration : iteration_numbers(timeline, *position))
    reports.push_back(
        trace::report_iteration(timeline, *position, iteration, activation_budget_bytes));
  return reports;
}

}  // namespace longhaul::report
