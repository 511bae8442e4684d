#include "cli/schedule/simulate_overlaps.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/program/working_line.hpp"
#include "base/version.hpp"
#include "cli/command/stop_signal.hpp"
#include "plan/rows.hpp"
#include "planner/choose_schedules.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "report/overlap_rows.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

/// What says something about plans without collectives of operators.
void refuse_beside_overlap(const Options& options) {
  const auto refuse = [](const char* option) {
    fail("{} and --overlap are both given (rows of overlaps have times alone). Leave one out.",
         option);
  };
  if (!options.granularity.empty()) refuse("--granularity");
  if (options.iterations) refuse("--iterations");
  if (options.bounds) refuse("--bounds");
  if (options.planner.robust) refuse("--robust");
}

/// `takers`: the searched overlaps that obey the option. Others may stand beside one of them, but
/// not search as if it were not given.
void require_taken(const char* option, const std::string& given,
                   std::span<const std::string_view> takers,
                   std::span<const collective::Overlap* const> wanted) {
  if (given.empty()) return;
  const auto takes = [&](const collective::Overlap* each) {
    return std::ranges::find(takers, each->name) != takers.end();
  };
  const bool is_taken = std::ranges::any_of(wanted, takes);
  for (const collective::Overlap* each : wanted)
    if (!takes(each) && (each->is_searched() || !is_taken))
      fail("{} and --overlap {} are both given (it is of {}). Leave one out.", option, each->name,
           fmt::join(takers, " and "));
}

void require_limits_taken(const Options& options,
                          std::span<const collective::Overlap* const> wanted) {
  constexpr std::array<std::string_view, 2> kAllow{"centauri", "best"};
  constexpr std::array<std::string_view, 1> kRules{"centauri"};
  require_taken("--allow", options.allow, kAllow, wanted);
  require_taken("--rules", options.rules, kRules, wanted);
}

/// As ranks name theirs: "gpipe+zero3".
std::string name_of(const planner::OverlapResult& row) {
  return fmt::format("{}+{}", row.schedule, row.overlap);
}

/// The timelines of all rows, of every rank. Where a search was stopped, it says after how many
/// iterations: trace overlap makes the same plan again.
void write_overlaps_trace(const Options& options, const Scenario& scenario,
                          const std::vector<planner::OverlapResult>& rows) {
  trace::Trace trace;
  trace.info.creator = fmt::format("longhaul {}", version());
  trace.info.git_commit = git_commit();
  trace.info.command_line = options.command_line;
  trace.info.scenario = scenario.text;
  ordered_json environment{{"numbers", "simulated"}, {"comm", options.comm}};
  if (!options.allow.empty()) environment["allow"] = options.allow;
  if (!options.rules.empty()) environment["rules"] = options.rules;
  for (const planner::OverlapResult& row : rows)
    if (row.certificate && row.certificate->is_stopped)
      environment["evaluated"][name_of(row)] = row.certificate->evaluated;
  trace.info.environment = environment.dump();
  trace.info.activation_budget_bytes = scenario.activation_budget().count();
  for (const planner::OverlapResult& row : rows) {
    planner::SimulatedIteration ran = planner::simulate_all_ranks(*row.plan).or_throw();
    ran.lowered.plan.schedule = name_of(row);
    plan::append_rows(trace.predicted, ran.lowered.plan, ran.times, 0);
  }
  trace::write_trace(options.out, trace);
}

/// SIGINT ends a search, and so does the end of its time or --overlap-search, with the best so far.
/// A terminal shows how far it is.
planner::SearchWatch watch_of(const std::string& schedule, const std::string& overlap,
                              const planner::PlannerOptions& planner) {
  const std::string name = fmt::format("{} {}", schedule, overlap);
  return planner::ended_after(
      planner.solver.time_limit, [name, most = planner.overlap_evaluations](std::size_t evaluated) {
        WorkingLine::step(fmt::format("{}, {} iterations simulated", name, evaluated));
        return StopSignal::came() || (most && evaluated >= *most);
      });
}

std::vector<planner::OverlapResult> overlap_rows(
    const Scenario& scenario, const std::vector<planner::ScheduleResult>& schedules,
    std::span<const collective::Overlap* const> wanted, const planner::PlannerOptions& planner,
    const planner::OverlapLimits& limits) {
  std::vector<planner::OverlapResult> rows;
  std::optional<StopSignal> stop;
  for (const planner::ScheduleResult& made : schedules)
    for (const collective::Overlap* overlap : wanted) {
      const bool is_searched = overlap->is_searched();
      planner::OverlapLimits of_row = is_searched ? limits : planner::OverlapLimits{};
      of_row.orders_too = made.found.has_value();
      if (is_searched && !stop) stop.emplace();
      rows.push_back(planner::evaluate_overlap(*overlap, made.schedule, scenario,
                                               planner.search.arrangement, of_row,
                                               watch_of(made.schedule.name, overlap->name, planner))
                         .or_throw());
    }
  return rows;
}

}  // namespace

Answer simulate_overlaps(const Options& options) {
  refuse_beside_overlap(options);
  if (!options.out.empty()) report::require_new_file(options.out);
  const std::vector<const collective::Overlap*> wanted =
      collective::parse_overlaps(options.overlap);
  require_limits_taken(options, wanted);
  const planner::OverlapLimits limits = planner::parse_overlap_limits(options.allow, options.rules);
  const Scenario scenario = scenario_of(options);
  const planner::PlannerOptions planner = planner_options_of(options);
  const planner::ChosenSchedules chosen =
      planner::ScheduleChooser{planner::parse_schedule_option(options.schedule), scenario, planner}
          .choose();
  const std::vector<planner::OverlapResult> rows =
      overlap_rows(scenario, chosen.schedules, wanted, planner, limits);
  if (!options.out.empty()) write_overlaps_trace(options, scenario, rows);
  if (!options.json) {
    std::string text = fmt::format("{}: {}; simulated, {}\n\n", scenario.name,
                                   report::size_text(scenario), options.comm);
    text += report::overlap_rows_text(rows, table_width(options));
    for (const planner::SkippedSchedule& skipped : chosen.skipped)
      text += fmt::format("\nskipped {}: {}\n", skipped.schedule, skipped.reason);
    if (!options.out.empty()) text += fmt::format("\nwrote {}\n", options.out);
    return {text};
  }
  ordered_json json = record_header(options, scenario);
  json["schedules"] = ordered_json::array();
  for (const planner::OverlapResult& row : rows) json["schedules"].push_back(report::to_json(row));
  json["skipped"] = ordered_json::array();
  for (const planner::SkippedSchedule& skipped : chosen.skipped)
    json["skipped"].push_back({{"schedule", skipped.schedule}, {"reason", skipped.reason}});
  if (!options.out.empty()) json["out"] = options.out;
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
