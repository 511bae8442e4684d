#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/unit_text.hpp"
#include "report/page/reported_run.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::report {
namespace {

std::string time_text(double ns) {
  return to_text(Duration{static_cast<std::int64_t>(std::llround(ns))});
}

std::string name_of(const std::vector<ReportedRun>& runs, const ReportedSchedule& schedule) {
  if (runs.size() == 1) return schedule.name;
  return fmt::format("{} of {}", schedule.name, runs[schedule.run].name);
}

/// Of a run that goes on without a datacenter: ", after east had left (3 iterations)".
std::string left_text(const ReportedRun& run) {
  const auto environment = nlohmann::json::parse(run.trace.info.environment, nullptr, false);
  if (!environment.is_object() || !environment.contains("left")) return {};
  const nlohmann::json& left = environment["left"];
  return fmt::format(", after {} had left ({}, {})", left.value("site", std::string{"a site"}),
                     counted(left.value("ranks", 0), "rank"),
                     counted(left.value("iteration", 0), "iteration") + " before");
}

std::string asked(const std::vector<ReportedRun>& runs,
                  const std::vector<ReportedSchedule>& schedules) {
  std::set<std::string> scenarios;
  for (const ReportedRun& run : runs) scenarios.insert(run.scenario_name);
  std::string shape;
  if (const auto& scenario = runs.front().scenario)
    shape = fmt::format(" ({} in {}, {})", counted(scenario->ranks(), "rank"),
                        counted(std::ssize(scenario->datacenters), "datacenter"),
                        counted(scenario->parallel.microbatches, "microbatch"));
  for (const ReportedRun& run : runs) shape += left_text(run);
  const bool is_measured =
      std::ranges::any_of(schedules, [](const auto& each) { return each.measured.n > 0; });
  return fmt::format("Asked: which of {} trains {}{} fastest; {}.",
                     counted(std::ssize(schedules), "schedule"), fmt::join(scenarios, " and "),
                     shape,
                     is_measured ? "they were run on ranks and predicted"
                                 : "they were simulated, nothing was run");
}

std::string won(const std::vector<ReportedRun>& runs, const ReportedSchedule& best) {
  if (best.measured.n == 0)
    return fmt::format("{} is fastest: {} an iteration, predicted.", name_of(runs, best),
                       time_text(best.time_ns()));
  const auto& interval = best.measured.median_interval;
  const std::string spread = interval
                                 ? fmt::format(", 95% interval {} to {}", time_text(interval->low),
                                               time_text(interval->high))
                                 : std::string{};
  return fmt::format("{} is fastest: {} an iteration, measured (median of {}{}).",
                     name_of(runs, best), time_text(best.measured.median), best.measured.n, spread);
}

std::string by_how_much(const std::vector<ReportedRun>& runs,
                        const std::vector<ReportedSchedule>& schedules) {
  if (schedules.size() == 1) return "There is nothing to hold it against: it is the only one.";
  const ReportedSchedule &best = schedules[0], &second = schedules[1], &last = schedules.back();
  const auto more = [&](const ReportedSchedule& other) {
    return 100 * (other.time_ns() / best.time_ns() - 1);
  };
  const auto &mine = best.measured.median_interval, &other = second.measured.median_interval;
  const bool overlap = mine && other && mine->high >= other->low;
  std::string text =
      fmt::format("The second, {}, takes {:.2f}% longer{}", name_of(runs, second), more(second),
                  overlap ? ", which the intervals do not tell apart" : "");
  if (schedules.size() > 2)
    text += fmt::format("; the last, {}, {:.1f}%", name_of(runs, last), more(last));
  return text + ".";
}

std::string how_true(const std::vector<ReportedSchedule>& schedules) {
  double least = 0, most = 0;
  int compared = 0;
  for (const ReportedSchedule& schedule : schedules) {
    const auto difference = schedule.difference_percent();
    if (!difference) continue;
    least = compared == 0 ? *difference : std::min(least, *difference);
    most = compared == 0 ? *difference : std::max(most, *difference);
    ++compared;
  }
  if (compared == 0)
    return "Nothing here was measured beside a prediction: it is as true as the model and its "
           "inputs.";
  return fmt::format(
      "Measured medians are {:+.2f} to {:+.2f}% from their predictions ({}); where links are "
      "emulated and blocks sleep, that says nothing about a real network or device.",
      least, most, counted(compared, "schedule"));
}

/// Time along the critical path, by what it is spent on.
struct PathTime {
  std::int64_t computing = 0, wan = 0, other_messages = 0, rest = 0;
};

PathTime time_along_path(std::span<const TimelineRow> rows) {
  PathTime time;
  std::int64_t until = 0;
  const auto row_of = [&](std::int64_t op) {
    return *std::ranges::lower_bound(rows, op, {}, &TimelineRow::op);
  };
  std::map<int, int> datacenter_of;
  for (const TimelineRow& row : rows) datacenter_of[row.rank] = row.datacenter;
  for (const trace::PathStep& step : trace::critical_path(rows)) {
    const TimelineRow row = row_of(step.op);
    time.rest += std::max<std::int64_t>(0, step.start_ns - until);
    const std::int64_t own =
        std::max<std::int64_t>(0, step.end_ns - std::max(until, step.start_ns));
    until = std::max(until, step.end_ns);
    const bool is_message = row.kind == RowKind::send || row.kind == RowKind::recv;
    const auto peer = datacenter_of.find(row.peer);
    const bool crosses =
        is_message && peer != datacenter_of.end() && peer->second != row.datacenter;
    (is_compute(row.kind) ? time.computing
     : crosses            ? time.wan
     : is_message         ? time.other_messages
                          : time.rest) += own;
  }
  return time;
}

std::string what_limits(const std::vector<ReportedRun>& runs, const ReportedSchedule& best) {
  const trace::Trace& trace = runs[best.run].trace;
  const Timeline& timeline = best.shown ? trace.measured : trace.predicted;
  const auto position = position_of(timeline, best.name);
  const auto rows = trace::rows_of(timeline, *position, best.shown.value_or(0));
  const PathTime time = time_along_path(rows);
  const auto all = static_cast<double>(
      std::max<std::int64_t>(1, time.computing + time.wan + time.other_messages + time.rest));
  const auto share = [&](std::int64_t part) { return 100 * static_cast<double>(part) / all; };
  return fmt::format(
      "What limits {}: of its critical path {:.0f}% computes, {:.0f}% crosses the WAN, {:.0f}% are "
      "other messages and {:.0f}% the rest; {} of device time is idle.",
      best.name, share(time.computing), share(time.wan), share(time.other_messages),
      share(time.rest), fmt::format("{:.1f}%", 100 * best.bubble.value_or(0)));
}

}  // namespace

std::vector<std::string> answer_in_words(const std::vector<ReportedRun>& runs,
                                         const std::vector<ReportedSchedule>& schedules) {
  const ReportedSchedule& best = schedules.front();
  return {asked(runs, schedules), won(runs, best), by_how_much(runs, schedules),
          how_true(schedules), what_limits(runs, best)};
}

}  // namespace longhaul::report
