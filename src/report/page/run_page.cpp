#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/version.hpp"
#include "report/page/page.hpp"
#include "report/page/reported_run.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::report {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json row_of(const std::vector<ReportedRun>& runs, const ReportedSchedule& schedule,
                    const ReportedSchedule& best) {
  const bool is_measured = schedule.measured.n > 0;
  return {{"run", runs[schedule.run].name},
          {"schedule", schedule.name},
          {"n", schedule.measured.n},
          {"measured_median_ns",
           is_measured ? ordered_json(schedule.measured.median) : ordered_json(nullptr)},
          {"predicted_ns", or_null(schedule.predicted_ns)},
          {"difference_percent", or_null(schedule.difference_percent())},
          {"bubble_ratio", or_null(schedule.bubble)},
          {"over_fastest", best.time_ns() > 0 ? ordered_json(schedule.time_ns() / best.time_ns())
                                              : ordered_json(nullptr)},
          {"timeline", nullptr}};
}

std::string title_of(const std::vector<ReportedRun>& runs, std::size_t schedules) {
  std::string names = runs.front().scenario_name;
  for (std::size_t i = 1; i < runs.size(); ++i)
    if (runs[i].scenario_name != runs[i - 1].scenario_name) names += ", " + runs[i].scenario_name;
  return fmt::format("{}: {} of {}", names,
                     counted(static_cast<std::int64_t>(schedules), "schedule"),
                     counted(std::ssize(runs), "run"));
}

ordered_json page_data(const std::vector<ReportedRun>& runs,
                       const std::vector<ReportedSchedule>& schedules) {
  ordered_json data{{"sentences", answer_in_words(runs, schedules)},
                    {"schedules", ordered_json::array()},
                    {"runs", ordered_json::array()},
                    {"timelines", ordered_json::array()}};
  std::size_t ops = 0, left_out = 0;
  for (const ReportedSchedule& schedule : schedules) {
    ordered_json row = row_of(runs, schedule, schedules.front());
    if (ops + schedule.ops <= kMostOps) {
      ops += schedule.ops;
      row["timeline"] = data["timelines"].size();
      ordered_json timeline = timeline_json(runs[schedule.run], schedule);
      timeline["title"] = runs.size() == 1
                              ? schedule.name
                              : fmt::format("{} of {}", schedule.name, runs[schedule.run].name);
      data["timelines"].push_back(std::move(timeline));
    } else {
      ++left_out;
    }
    data["schedules"].push_back(std::move(row));
  }
  for (const ReportedRun& run : runs) data["runs"].push_back(run_json(run));
  data["left_out"] = left_out == 0
                         ? std::string{}
                         : fmt::format(
                               "The timelines of {} are left out: a page holds {} ops. Choose with "
                               "--schedule.",
                               counted(static_cast<std::int64_t>(left_out), "schedule"), kMostOps);
  data["made_by"] = fmt::format("longhaul {} ({})", version(), git_commit());
  return data;
}

}  // namespace

RunPage run_page(const std::vector<ReportedRun>& runs, const std::string& only) {
  std::vector<ReportedSchedule> schedules;
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (ReportedSchedule& schedule : reported_schedules(runs[i], i, only))
      if (schedule.ops > 0) schedules.push_back(std::move(schedule));
  if (schedules.empty())
    fail("{}: no iteration of a schedule is finished. Let the run go on with --resume.",
         runs.front().name);
  std::ranges::stable_sort(schedules, {}, &ReportedSchedule::time_ns);
  return {title_of(runs, schedules.size()), page_data(runs, schedules)};
}

std::string write_page_of_run(const std::filesystem::path& directory) {
  const std::filesystem::path trace = directory / "trace.h5", page = directory / "report.html";
  std::string why;
  try {
    const trace::TraceOverview overview = trace::overview_of(trace);
    const std::uint64_t rows = overview.measured_rows + overview.predicted_rows;
    if (rows > kMostRowsAtEnd) {
      why = fmt::format("{} rows", rows);
    } else {
      require_new_file(page);
      const RunPage made = run_page({reported_run(directory.string(), trace::read_trace(trace))});
      write_new_file(page, [&](std::ostream& out) { out << report_page(made.title, made.data); });
    }
  } catch (const Error& problem) {
    why = problem.what();
  }
  return why.empty() ? std::string{} : left_out_text(page, directory, why);
}

std::string left_out_text(const std::filesystem::path& page, const std::filesystem::path& directory,
                          std::string_view why) {
  return fmt::format(
      "longhaul: {} is left out ({}). Make it with `longhaul report {} --out FILE`.\n",
      page.string(), why, directory.string());
}

}  // namespace longhaul::report
