#include "cli/schedule/simulate_overlaps.hpp"

#include <nlohmann/json.hpp>

#include "planner/choose_schedules.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "report/overlap_rows.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

/// What says something about plans without collectives of operators.
void refuse_beside_overlap(const Options& options) {
  const auto refuse = [](const char* option) {
    fail("{} and --overlap are both given (rows of overlaps have times alone). Leave one out.",
         option);
  };
  if (!options.out.empty()) refuse("--out");
  if (!options.granularity.empty()) refuse("--granularity");
  if (options.iterations) refuse("--iterations");
  if (options.bounds) refuse("--bounds");
  if (options.planner.robust) refuse("--robust");
}

}  // namespace

Answer simulate_overlaps(const Options& options) {
  refuse_beside_overlap(options);
  const std::vector<const collective::Overlap*> wanted =
      collective::parse_overlaps(options.overlap);
  const Scenario scenario = scenario_of(options);
  const planner::PlannerOptions planner = planner_options_of(options);
  const planner::ChosenSchedules chosen =
      planner::ScheduleChooser{planner::parse_schedule_option(options.schedule), scenario, planner}
          .choose();
  std::vector<planner::OverlapResult> rows;
  for (const planner::ScheduleResult& made : chosen.schedules)
    for (const collective::Overlap* overlap : wanted)
      rows.push_back(
          planner::evaluate_overlap(*overlap, made.schedule, scenario, planner.search.arrangement)
              .or_throw());
  if (!options.json) {
    std::string text = fmt::format("{}: {}; simulated, {}\n\n", scenario.name,
                                   report::size_text(scenario), options.comm);
    text += report::overlap_rows_text(rows, table_width(options));
    for (const planner::SkippedSchedule& skipped : chosen.skipped)
      text += fmt::format("\nskipped {}: {}\n", skipped.schedule, skipped.reason);
    return {text};
  }
  ordered_json json = record_header(options, scenario);
  json["schedules"] = ordered_json::array();
  for (const planner::OverlapResult& row : rows) json["schedules"].push_back(report::to_json(row));
  json["skipped"] = ordered_json::array();
  for (const planner::SkippedSchedule& skipped : chosen.skipped)
    json["skipped"].push_back({{"schedule", skipped.schedule}, {"reason", skipped.reason}});
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
