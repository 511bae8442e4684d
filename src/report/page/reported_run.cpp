#include "report/page/reported_run.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "report/record.hpp"

namespace longhaul::report {
namespace {

using nlohmann::ordered_json;

double mean_bubble(const trace::IterationReport& report) { return mean(report.bubble_ratio); }

std::size_t ops_of(const Timeline& timeline, const std::string& schedule, int iteration) {
  const auto position = position_of(timeline, schedule);
  return position ? trace::rows_of(timeline, *position, iteration).size() : 0;
}

ordered_json reported_environment(const trace::RunInfo& info) {
  ordered_json json = ordered_json::parse(info.environment, nullptr, false);
  return json.is_discarded() ? ordered_json(info.environment) : json;
}

}  // namespace

double ReportedSchedule::time_ns() const {
  return measured.n > 0 ? measured.median : predicted_ns.value_or(0);
}

std::optional<double> ReportedSchedule::difference_percent() const {
  if (measured.n == 0 || predicted_ns.value_or(0) <= 0) return std::nullopt;
  return 100 * (measured.median / *predicted_ns - 1);
}

ReportedRun reported_run(const std::string& source, trace::Trace trace) {
  ReportedRun run;
  run.name = source;
  run.trace = std::move(trace);
  try {
    run.scenario = scenario_of_trace(run.trace, source);
    if (!run.scenario->name.empty()) run.scenario_name = run.scenario->name;
  } catch (const Error&) {
    // An older program's: the page then shows its text alone.
  }
  return run;
}

std::vector<ReportedSchedule> reported_schedules(const ReportedRun& run, std::size_t index,
                                                 const std::string& only) {
  std::vector<ReportedSchedule> all;
  for (const std::string& name : traced_schedules(run.trace, only)) {
    ReportedSchedule schedule;
    schedule.run = index;
    schedule.name = name;
    const auto predicted = reports_of(run.trace.predicted, name, 0);
    if (!predicted.empty()) {
      schedule.predicted_ns = static_cast<double>(predicted.front().makespan_ns);
      schedule.bubble = mean_bubble(predicted.front());
      schedule.ops = ops_of(run.trace.predicted, name, predicted.front().iteration);
    }
    const auto measured = reports_of(run.trace.measured, name, 0);
    if (!measured.empty()) {
      std::vector<double> makespans, bubbles;
      for (const trace::IterationReport& report : measured) {
        makespans.push_back(static_cast<double>(report.makespan_ns));
        bubbles.push_back(mean_bubble(report));
      }
      schedule.measured = summarize(makespans);
      schedule.bubble = mean(bubbles);
      schedule.shown = nearest_to_median(measured);
      schedule.ops = std::max(schedule.ops, ops_of(run.trace.measured, name, *schedule.shown));
    }
    all.push_back(std::move(schedule));
  }
  return all;
}

ordered_json run_json(const ReportedRun& run) {
  const trace::RunInfo& info = run.trace.info;
  return {{"name", run.name},
          {"creator", info.creator},
          {"git_commit", info.git_commit},
          {"command_line", info.command_line},
          {"scenario", info.scenario},
          {"environment", reported_environment(info)},
          {"time_scale", info.time_scale}};
}

}  // namespace longhaul::report
