#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "cli/command/commands.hpp"
#include "cli/schedule/simulate_overlaps.hpp"
#include "cli/schedule/stream_rows.hpp"
#include "report/evaluate.hpp"
#include "report/planning.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "report/stream_report.hpp"
#include "report/tables.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

struct SimulatedSchedules {
  std::vector<report::ScheduleRecord> records;
  std::vector<planner::ScheduleResult> made;           ///< likewise
  std::vector<planner::RobustCandidate> under_jitter;  ///< likewise, with --robust
  std::vector<report::UnderWeather> under_weather;     ///< likewise, with --iterations
  std::vector<report::StreamReport> streams;           ///< likewise, of replicas that train so
  std::vector<planner::SkippedSchedule> skipped;
  Timeline timeline;  ///< of all schedules where a trace is wanted
};

/// Predicts what was asked for: parsed values go in, SimulatedSchedules come out.
class Simulator {
public:
  /// `scenario` must live as long.
  Simulator(const Scenario& scenario, planner::PlannerOptions planner,
            std::vector<planner::ScheduleRequest> requests, const Options& options)
      : scenario_{scenario},
        planner_{std::move(planner)},
        requests_{std::move(requests)},
        iterations_{options.iterations},
        bounds_{options.bounds ? report::Bounds::computed : report::Bounds::left_out},
        granularity_{report::granularity_of(options.granularity)},
        keeps_rows_{!options.out.empty()} {}

  [[nodiscard]] SimulatedSchedules run() const {
    planner::ChosenSchedules chosen =
        planner::ScheduleChooser{requests_, scenario_, planner_}.choose();
    SimulatedSchedules simulation;
    simulation.skipped = std::move(chosen.skipped);
    simulation.made = std::move(chosen.schedules);
    if (keeps_rows_) {
      for (const planner::ScheduleResult& made : simulation.made)
        simulation.records.push_back(report::evaluate(made, scenario_, arrangement(), bounds_,
                                                      &simulation.timeline, granularity_));
    } else {
      simulation.records = report::evaluate_all(simulation.made, scenario_, arrangement(), bounds_,
                                                planner_.search.threads, granularity_);
    }
    if (planner_.robust) simulation.under_jitter = all_under_jitter(simulation.made);
    if (iterations_) {
      simulation.under_weather =
          report::all_under_weather(simulation.made, scenario_, arrangement(), *iterations_);
      simulation.streams =
          report::all_streams(simulation.made, scenario_, arrangement(), *iterations_);
    }
    return simulation;
  }

  [[nodiscard]] Arrangement arrangement() const { return planner_.search.arrangement; }

private:
  /// How the schedules do in the iterations that `best` is picked by.
  [[nodiscard]] std::vector<planner::RobustCandidate> all_under_jitter(
      const std::vector<planner::ScheduleResult>& schedules) const {
    planner::RobustOptions options;
    options.search = planner_.search;
    std::vector<planner::RobustCandidate> result;
    for (const planner::ScheduleResult& made : schedules)
      result.push_back({made.schedule, made.schedule.name,
                        planner::under_jitter(made.schedule, scenario_, options)});
    return result;
  }

  const Scenario& scenario_;
  planner::PlannerOptions planner_;
  std::vector<planner::ScheduleRequest> requests_;
  std::optional<int> iterations_;
  report::Bounds bounds_;
  Granularity granularity_;
  bool keeps_rows_;
};

Simulator simulator_of(const Options& options, const Scenario& scenario) {
  planner::PlannerOptions planner = planner_options_of(options);
  if (options.iterations) report::require_iteration_count(*options.iterations);
  if (planner.robust) planner::require_jitter(scenario);
  return {scenario, std::move(planner), planner::parse_schedule_option(options.schedule), options};
}

std::string text_of(const SimulatedSchedules& simulation, const Scenario& scenario,
                    const Options& options) {
  const TableWidth width = table_width(options);
  std::string text = fmt::format("{}: {}; simulated, {}\n\n", scenario.name,
                                 report::size_text(scenario), options.comm);
  text += report::table_text(simulation.records, scenario, width);
  std::string notes;
  for (const planner::ScheduleResult& made : simulation.made) notes += report::planning_note(made);
  if (!notes.empty()) text += '\n' + notes;
  if (!simulation.under_jitter.empty())
    text += fmt::format("\nIn {} iterations under jitter (run.seed = {}):\n",
                        planner::RobustOptions{}.samples, scenario.run.seed) +
            report::under_jitter_text(simulation.under_jitter);
  if (!simulation.under_weather.empty())
    text += report::under_weather_text(simulation.under_weather, scenario);
  text += report::streams_text(simulation.streams);
  text +=
      "\nWhere the devices' time was idle:\n" + report::idle_table_text(simulation.records, width);
  text +=
      report::resource_table_text(simulation.records, width) +
      report::operator_table_text(simulation.records, width) +
      report::overlap_text(scenario, report::granularity_of(options.granularity)) +
      report::ignored_text(scenario, options.iterations ? "; weather counts in its own table" : "");
  for (const planner::SkippedSchedule& skipped : simulation.skipped)
    text += fmt::format("\nskipped {}: {}\n", skipped.schedule, skipped.reason);
  return text;
}

ordered_json to_json(const SimulatedSchedules& simulation, const Scenario& scenario,
                     const Options& options) {
  ordered_json json = record_header(options, scenario);
  json["schedules"] = ordered_json::array();
  for (std::size_t i = 0; i < simulation.records.size(); ++i) {
    json["schedules"].push_back(report::to_json(simulation.records[i]));
    if (simulation.made[i].found)
      json["schedules"].back()["planning"] = report::planning_json(simulation.made[i]);
    if (!simulation.streams.empty())
      json["schedules"].back()["stream"] = report::stream_json(simulation.streams[i]);
  }
  if (simulation.streams.size() == 1) {
    json["stream"] = report::stream_json(simulation.streams.front());
    if (const auto& adaptation = simulation.streams.front().adaptation)
      json["adaptation"] = report::adaptation_json(*adaptation);
  }
  if (!simulation.under_jitter.empty())
    json["under_jitter"] = report::under_jitter_json(simulation.under_jitter);
  if (!simulation.under_weather.empty())
    json["under_weather"] = report::under_weather_json(simulation.under_weather);
  json["skipped"] = ordered_json::array();
  for (const planner::SkippedSchedule& skipped : simulation.skipped)
    json["skipped"].push_back({{"schedule", skipped.schedule}, {"reason", skipped.reason}});
  if (!options.out.empty()) json["out"] = options.out;
  return json;
}

/// The bounds that were computed, by the name of their schedule.
ordered_json bounds_json(const SimulatedSchedules& simulation) {
  ordered_json json = ordered_json::object();
  for (const report::ScheduleRecord& record : simulation.records)
    if (record.bound)
      json[record.schedule] = {{"lower_bound_ns", record.bound->lower_bound.count()},
                               {"holds_for", record.bound->holds_for}};
  return json;
}

void write_simulated_trace(const Options& options, const Scenario& scenario,
                           SimulatedSchedules simulation) {
  trace::Trace trace;
  trace.info.creator = fmt::format("longhaul {}", version());
  trace.info.git_commit = git_commit();
  trace.info.command_line = options.command_line;
  trace.info.scenario = scenario.text;
  trace.info.environment =
      ordered_json{
          {"numbers", "simulated"}, {"comm", options.comm}, {"bounds", bounds_json(simulation)}}
          .dump();
  trace.info.activation_budget_bytes = scenario.activation_budget().count();
  trace.predicted = std::move(simulation.timeline);
  trace::write_trace(options.out, trace);
}

}  // namespace

Answer simulate_command(const Options& options) {
  if (options.hierarchical) return simulate_hierarchy(options);
  if (!options.overlap.empty()) return simulate_overlaps(options);
  if (!options.allow.empty())
    fail("--allow: nothing is searched (it is of --overlap centauri and best). Add --overlap.");
  if (!options.rules.empty())
    fail("--rules: nothing is searched (it is of --overlap centauri). Add --overlap.");
  const Scenario scenario = scenario_of(options);
  const bool traced = !options.out.empty();
  if (traced) report::require_new_file(options.out);
  if (!options.rows.empty() && !options.iterations)
    fail("--rows {}: there is no stream. Add --iterations.", options.rows);
  const Simulator simulator = simulator_of(options, scenario);
  SimulatedSchedules simulation = simulator.run();
  if (!options.rows.empty()) {
    if (simulation.made.size() != 1)
      fail("--rows {}: {} schedules (a file has one). Name one with --schedule.", options.rows,
           simulation.made.size());
    write_stream_rows(options.rows, simulation.made.front().schedule, scenario,
                      simulator.arrangement(), *options.iterations);
  }
  Answer answer;
  if (options.json) {
    answer.text = report::json_text(to_json(simulation, scenario, options));
  } else {
    answer.text = text_of(simulation, scenario, options);
    if (traced) answer.text += fmt::format("\nwrote {}\n", options.out);
  }
  if (traced) write_simulated_trace(options, scenario, std::move(simulation));
  return answer;
}

}  // namespace longhaul::cli
