#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "planner/hierarchy/hierarchy.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

struct PlayedSchedule {
  std::string name;
  planner::HierarchicalTimes times;
  double seconds = 0;  ///< that it took to play
};

struct HierarchicalRun {
  double load_seconds = 0;  ///< to read the scenario
  std::vector<PlayedSchedule> played;
  std::vector<std::pair<std::string, std::string>> skipped;  ///< schedule, reason
};

HierarchicalRun play_all(const Scenario& scenario, const std::string& schedules) {
  HierarchicalRun run;
  for (const planner::ScheduleRequest& request : planner::parse_schedule_option(schedules)) {
    if (request.generator == nullptr || request.put_in_cells)
      fail("--hierarchical: {} is no static schedule (equal replicas share its rows). Name one.",
           request.name);
    const TimePoint begin = now();
    Result<planner::HierarchicalTimes> times =
        planner::play_hierarchically(scenario, *request.generator);
    if (!times && request.from_group) {
      run.skipped.emplace_back(request.name, times.refusal().reason);
      continue;
    }
    run.played.push_back({request.name, std::move(times).or_throw(),
                          std::chrono::duration<double>(now() - begin).count()});
  }
  return run;
}

/// Largest memory of this process so far; 0 where the system does not say. (What getrusage() says
/// may be of the process that started it.)
std::int64_t peak_bytes() {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;)
    if (std::int64_t kilobytes = 0; word == "VmHWM:" && status >> kilobytes)
      return 1024 * kilobytes;
  return 0;
}

/// Share of the iteration in which devices compute.
double busy_of(const planner::HierarchicalTimes& times, const Scenario& scenario) {
  const double devices = static_cast<double>(scenario.parallel.stages) * scenario.parallel.replicas;
  return static_cast<double>(times.work.count()) /
         (devices * static_cast<double>(times.iteration.count()));
}

std::string text_of(const HierarchicalRun& run, const Scenario& scenario, TableWidth width) {
  Table table{{{"schedule", Align::left},
               {"iteration"},
               {"last block"},
               {"busy [%]"},
               {"memory", Align::right, 4},
               {"tokens/s", Align::right, 3},
               {"op lists", Align::right, 2},
               {"ops"},
               {"played"},
               {"took", Align::right, 1}}};
  for (const PlayedSchedule& each : run.played) {
    const auto tokens = report::tokens_per_second(scenario, each.times.iteration.count());
    table.add_row({each.name, to_text(each.times.iteration), to_text(each.times.last_block),
                   fmt::format("{:.1f}", 100 * busy_of(each.times, scenario)),
                   each.times.memory ? to_text(*each.times.memory) : "-",
                   tokens ? fmt::format("{:.0f}", *tokens) : "-",
                   std::to_string(each.times.programs), std::to_string(each.times.ops),
                   std::to_string(each.times.played), fmt::format("{:.2f} s", each.seconds)});
  }
  std::string text =
      fmt::format("{}: {}; {} ranks in {} datacenters; simulated, part by part\n\n", scenario.name,
                  report::size_text(scenario), scenario.ranks(), scenario.datacenters.size()) +
      table.text(width) +
      "\nops: of the plan of all ranks; played: blocks of lists that replicas share, and messages "
      "one by one\n";
  for (const auto& [schedule, reason] : run.skipped)
    text += fmt::format("\nskipped {}: {}\n", schedule, reason);
  return text + report::ignored_text(scenario);
}

ordered_json json_of(const HierarchicalRun& run, const Scenario& scenario, const Options& options) {
  ordered_json json = record_header(options, scenario);
  json["ranks"] = scenario.ranks();
  json["datacenters"] = scenario.datacenters.size();
  json["load_seconds"] = run.load_seconds;
  json["peak_bytes"] = peak_bytes();
  json["schedules"] = ordered_json::array();
  for (const PlayedSchedule& each : run.played) {
    const planner::HierarchicalTimes& times = each.times;
    const auto tokens = report::tokens_per_second(scenario, times.iteration.count());
    const auto mfu = report::model_flops_utilization(scenario, times.iteration.count());
    json["schedules"].push_back(
        {{"schedule", each.name},
         {"makespan_ns", times.makespan.count()},
         {"iteration_ns", times.iteration.count()},
         {"last_block_ns", times.last_block.count()},
         {"busy", busy_of(times, scenario)},
         {"memory_bytes", times.memory ? ordered_json(times.memory->count()) : nullptr},
         {"tokens_per_second", tokens ? ordered_json(*tokens) : nullptr},
         {"mfu", mfu ? ordered_json(*mfu) : nullptr},
         {"op_lists", times.programs},
         {"ops", times.ops},
         {"played", times.played},
         {"seconds", each.seconds}});
  }
  json["skipped"] = ordered_json::array();
  for (const auto& [schedule, reason] : run.skipped)
    json["skipped"].push_back({{"schedule", schedule}, {"reason", reason}});
  return json;
}

}  // namespace

Answer simulate_hierarchy(const Options& options) {
  for (const auto& [name, given] : {std::pair{"--overlap", !options.overlap.empty()},
                                    {"--out", !options.out.empty()},
                                    {"--iterations", options.iterations.has_value()},
                                    {"--bounds", options.bounds},
                                    {"--granularity", !options.granularity.empty()},
                                    {"--comm", options.comm != "decoupled"}})
    if (given)
      fail("{}: it needs the plan of all ranks, which --hierarchical does without. Leave one out.",
           name);
  const TimePoint begin = now();
  const Scenario scenario = scenario_of(options);
  const double load_seconds = std::chrono::duration<double>(now() - begin).count();
  HierarchicalRun run = play_all(scenario, options.schedule);
  run.load_seconds = load_seconds;
  if (options.json) return {report::json_text(json_of(run, scenario, options))};
  return {text_of(run, scenario, table_width(options))};
}

}  // namespace longhaul::cli
