#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/prefill/simulated_bubbles.hpp"
#include "plan/rows.hpp"
#include "planner/choose_schedules.hpp"
#include "planner/collectives/grain.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "sim/simulate.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(std::int64_t op) { return op < 0 ? ordered_json{} : ordered_json(op); }

}  // namespace

SimulatedBubbles bubbles_of(const Schedule& schedule, const Scenario& scenario,
                            Arrangement arrangement) {
  Plan plan = planner::lower_reported(schedule, scenario, arrangement).plan;
  OpTimes times = sim::simulate(plan);
  Timeline timeline;
  plan::append_rows(timeline, plan, times, 0);
  const int cell = scenario.parallel.cell.value_or(plan.cell);
  return {schedule, prefill::find_bubbles(timeline.rows, scenario.training_ranks()), cell,
          std::move(plan), std::move(times)};
}

std::vector<SimulatedBubbles> simulated_bubbles(const Options& options, const Scenario& scenario) {
  const planner::PlannerOptions planner = planner_options_of(options);
  const planner::ChosenSchedules chosen =
      planner::ScheduleChooser{planner::parse_schedule_option(options.schedule), scenario, planner}
          .choose();
  std::vector<SimulatedBubbles> all;
  for (const planner::ScheduleResult& made : chosen.schedules)
    all.push_back(bubbles_of(made.schedule, scenario, planner.search.arrangement));
  return all;
}

ordered_json bubbles_json(const SimulatedBubbles& bubbles) {
  ordered_json json{{"schedule", bubbles.schedule.name},
                    {"period_ns", bubbles.iteration.period.count()},
                    {"busy_ratio", bubbles.iteration.busy_ratio()},
                    {"bubbles", ordered_json::array()},
                    {"idle_ns_by_length", ordered_json::array()}};
  for (const prefill::Bubble& bubble : bubbles.iteration.bubbles)
    json["bubbles"].push_back({{"rank", bubble.rank},
                               {"start_ns", bubble.start.count()},
                               {"end_ns", bubble.end.count()},
                               {"after_op", or_null(bubble.after_op)},
                               {"before_op", or_null(bubble.before_op)}});
  for (const prefill::LengthClass& length : prefill::idle_by_length(bubbles.iteration))
    json["idle_ns_by_length"].push_back(
        {{"below_ns",
          length.below == Duration::max() ? ordered_json{} : ordered_json(length.below.count())},
         {"bubbles", length.bubbles},
         {"idle_ns", length.idle.count()}});
  return json;
}

std::string bubbles_text(const std::vector<SimulatedBubbles>& all, TableWidth width) {
  Table table{{{"schedule", Align::left},
               {"period"},
               {"busy"},
               {"bubbles"},
               {"idle a GPU"},
               {"longest bubble"}}};
  for (const SimulatedBubbles& each : all) {
    Duration idle{}, longest{};
    for (const prefill::Bubble& bubble : each.iteration.bubbles) {
      idle += bubble.length();
      longest = std::max(longest, bubble.length());
    }
    table.add_row({each.schedule.name, to_text(each.iteration.period),
                   report::percent_text(each.iteration.busy_ratio()) + "%",
                   std::to_string(each.iteration.bubbles.size()),
                   to_text(idle / std::max(1, each.iteration.gpus)), to_text(longest)});
  }
  std::string text = table.text(width);
  for (const SimulatedBubbles& each : all) {
    text += fmt::format("\n{}: idle time by the length of its bubbles\n", each.schedule.name);
    Table lengths{{{"shorter than"}, {"bubbles"}, {"idle"}}};
    for (const prefill::LengthClass& length : prefill::idle_by_length(each.iteration))
      lengths.add_row({length.below == Duration::max() ? "-" : to_text(length.below),
                       std::to_string(length.bubbles), to_text(length.idle)});
    text += lengths.text(width);
  }
  return text;
}

Answer bubbles_command(const Options& options) {
  if (!options.trace.empty()) return measured_bubbles_command(options);
  if (options.files.empty())
    fail("bubbles: a file is missing. Name a scenario (.toml), or a trace with --trace.");
  const Scenario scenario = scenario_of(options);
  const std::vector<SimulatedBubbles> all = simulated_bubbles(options, scenario);
  if (!options.json)
    return {fmt::format("{}: {}; simulated, {}\n\n", scenario.name, report::size_text(scenario),
                        options.comm) +
            bubbles_text(all, table_width(options)) + report::ignored_text(scenario)};
  ordered_json json = record_header(options, scenario);
  json["schedules"] = ordered_json::array();
  for (const SimulatedBubbles& each : all) json["schedules"].push_back(bubbles_json(each));
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
