#include <algorithm>
#include <array>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/table.hpp"
#include "cli/command/commands.hpp"
#include "cli/schedule/schedule_output.hpp"
#include "report/evaluate.hpp"
#include "report/planning.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "report/tables.hpp"
#include "schedule/generators/cell/atlas.hpp"

namespace longhaul::cli {
namespace {

std::size_t count_of(std::span<const Block> row, BlockKind kind) {
  return to_size(
      std::count_if(row.begin(), row.end(), [&](const Block& b) { return b.kind == kind; }));
}

/// A device's blocks of a kind: one number, or the least and the most where replicas differ.
std::string counts_text(const Schedule& schedule, DeviceId device, BlockKind kind) {
  std::vector<std::size_t> counts;
  for (const ReplicaId replica : schedule.replica_ids())
    counts.push_back(count_of(schedule.row(replica, device), kind));
  const auto [least, most] = std::ranges::minmax(counts);
  return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
}

/// A line for each device: its chunks, its blocks by kind, its memory and its idle share.
std::string device_table(const Schedule& schedule, const report::ScheduleRecord& record,
                         TableWidth width) {
  std::vector<Table::Column> columns{{"device"}, {"chunks", Align::left}};
  std::vector<BlockKind> shown;
  for (const BlockKind kind : every<BlockKind>()) {
    std::size_t blocks = 0;
    for (const auto& row : schedule.rows) blocks += count_of(row, kind);
    if (blocks == 0) continue;
    shown.push_back(kind);
    columns.push_back({longhaul::to_string(kind)});
  }
  columns.push_back({"peak act."});
  columns.push_back({"bubble [%]"});
  Table table{columns};
  for (const DeviceId device : schedule.device_ids()) {
    const auto d = index(device);
    std::vector<std::string> cells{std::to_string(number(device)),
                                   fmt::format("{}", fmt::join(chunks_on(schedule, device), " "))};
    for (const BlockKind kind : shown) cells.push_back(counts_text(schedule, device, kind));
    cells.push_back(fmt::format("{:.2f}", record.peak_activation[d]));
    cells.push_back(report::percent_text(record.bubble_ratio[d]));
    table.add_row(std::move(cells));
  }
  return table.text(width);
}

/// Where --format pytorch-comms put the gathers, and what that takes.
nlohmann::ordered_json placed_json(const planner::PlacedGathers& placed) {
  nlohmann::ordered_json json{{"makespan_ns", placed.makespan.count()}};
  if (placed.gathers.empty()) return json;
  json["usual_makespan_ns"] = placed.usual.count();
  json["usual_fits"] = placed.usual_fits;
  json["lower_bound_ns"] = placed.bound.lower_bound.count();
  json["peak_bytes"] = placed.peak.count();
  json["fits"] = placed.fits;
  json["evaluated"] = placed.evaluated;
  for (const std::vector<collective::ChunkGather>& own : placed.gathers) {
    nlohmann::ordered_json gathers = nlohmann::ordered_json::array();
    for (const collective::ChunkGather& each : own)
      gathers.push_back({{"chunk", number(each.chunk)},
                         {"issue", each.issue},
                         {"first", each.first},
                         {"last", each.last}});
    json["devices"].push_back(std::move(gathers));
  }
  return json;
}

/// The times by which the generator decided (Atlas' figure 6), a row for each
/// (replica, device), or for each device where all replicas are equal.
nlohmann::ordered_json timetable_json(const schedule::Generator& generator,
                                      const Schedule& schedule, const Scenario& scenario) {
  const schedule::Timetable timetable = schedule::timetable_of(generator, scenario);
  nlohmann::ordered_json json{{"end_ns", timetable.end.count()}};
  for (std::size_t i = 0; i < schedule.rows.size(); ++i) {
    nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
    for (std::size_t b = 0; b < schedule.rows[i].size(); ++b) {
      const Block& block = schedule.rows[i][b];
      blocks.push_back({{"kind", longhaul::to_string(block.kind)},
                        {"microbatch", number(block.microbatch)},
                        {"start_ns", timetable.starts[i][b].count()}});
    }
    const auto devices = to_size(schedule.devices);
    json["rows"].push_back(
        {{"replica", i / devices}, {"device", i % devices}, {"blocks", std::move(blocks)}});
  }
  return json;
}

std::string text_of(const planner::ScheduleResult& made, const Scenario& scenario,
                    const report::ScheduleRecord& record, const Options& options) {
  const Schedule& schedule = made.schedule;
  const TableWidth width = table_width(options);
  return fmt::format("{} on {}: {}, {}, {}; simulated, {}\n\n", schedule.name, scenario.name,
                     report::counted(schedule.devices, "device"),
                     report::counted(schedule.chunks, "chunk"),
                     report::counted(schedule.microbatches, "microbatch"), options.comm) +
         device_table(schedule, record, width) + '\n' +
         report::table_text({&record, 1}, scenario, width) +
         report::resource_table_text({&record, 1}, width) +
         report::operator_table_text({&record, 1}, width) + report::planning_text(made) +
         report::overlap_text(scenario, report::granularity_of(options.granularity)) +
         report::ignored_text(scenario);
}

}  // namespace

Answer schedule_command(const Options& options) {
  const Scenario scenario = scenario_of(options);
  const OutputFormat format = output_format_of(options.format);
  const plan::GoalSimulator simulator = goal_simulator_of(options.goal, format);
  std::optional<ScheduleOutput> output;
  const Granularity granularity = report::granularity_of(options.granularity);
  if (!options.out.empty()) {
    require_granularity(format, granularity);
    output.emplace(format, simulator, options.out, scenario);
  }
  planner::PlannerOptions planner = planner_options_of(options);
  if (planner.search.placements.empty()) planner.search.placements = placements_of(format);
  const planner::ScheduleRequest request = planner::parse_single_schedule_option(options.schedule);
  const planner::ScheduleResult made = planner::choose_schedule(request, scenario, planner);
  const Schedule& schedule = made.schedule;
  if (output) output->prepare(schedule, scenario, planner.search.arrangement, granularity);
  const report::ScheduleRecord record = report::evaluate(
      made, scenario, planner.search.arrangement, report::Bounds::computed, nullptr, granularity);
  Answer answer;
  if (options.json) {
    nlohmann::ordered_json json = record_header(options, scenario);
    json["schedules"] = nlohmann::ordered_json::array({report::to_json(record)});
    if (made.found) json["schedules"][0]["planning"] = report::planning_json(made);
    if (request.has_timetable())
      json["schedules"][0]["timetable"] = timetable_json(*request.generator, schedule, scenario);
    if (output) json["out"] = options.out;
    if (output && output->placed()) json["gathers"] = placed_json(*output->placed());
    if (output && format == OutputFormat::chakra) json["files"] = output->files();
    if (output && !output->remarks().empty()) json["remarks"] = output->remarks();
    answer.text = report::json_text(json);
  } else {
    answer.text = text_of(made, scenario, record, options);
    if (output) answer.text += '\n' + output->note();
  }
  if (output) output->write();
  return answer;
}

}  // namespace longhaul::cli
