#include <array>

#include "base/suggest.hpp"
#include "base/table.hpp"
#include "cli/commands.hpp"
#include "cli/evaluate.hpp"
#include "cli/files.hpp"
#include "cli/planning.hpp"
#include "cli/resource_table.hpp"
#include "cli/words.hpp"
#include "schedule/csv.hpp"

namespace longhaul {
namespace {

constexpr std::array kBlockKinds{BlockKind::F, BlockKind::B, BlockKind::D, BlockKind::W,
                                 BlockKind::R};

CsvFormat csv_format_of(const std::string& text) {
  if (text.empty() || text == "longhaul") return CsvFormat::longhaul;
  if (text == "pytorch") return CsvFormat::pytorch;
  const std::vector<std::string> known{"longhaul", "pytorch"};
  fail("--format: unknown format \"{}\". {}", text, suggestion(text, known));
}

std::size_t count_of(std::span<const Block> row, BlockKind kind) {
  return static_cast<std::size_t>(
      std::count_if(row.begin(), row.end(), [&](const Block& b) { return b.kind == kind; }));
}

/// A line for each device: its chunks, its blocks by kind, its memory and its idle share.
std::string device_table(const Schedule& schedule, const ScheduleRecord& record) {
  std::vector<Table::Column> columns{{"device"}, {"chunks", Align::left}};
  std::vector<BlockKind> shown;
  for (const BlockKind kind : kBlockKinds) {
    std::size_t blocks = 0;
    for (const auto& row : schedule.rows) blocks += count_of(row, kind);
    if (blocks == 0) continue;
    shown.push_back(kind);
    columns.push_back({name_of(kind)});
  }
  columns.push_back({"peak act."});
  columns.push_back({"bubble [%]"});
  Table table{columns};
  for (int device = 0; device < schedule.devices; ++device) {
    const auto d = static_cast<std::size_t>(device);
    std::vector<std::string> cells{std::to_string(device),
                                   fmt::format("{}", fmt::join(chunks_on(schedule, device), " "))};
    for (const BlockKind kind : shown)
      cells.push_back(std::to_string(count_of(schedule.row(0, device), kind)));
    cells.push_back(fmt::format("{:.2f}", record.peak_activation[d]));
    cells.push_back(percent_text(record.bubble_ratio[d]));
    table.add_row(std::move(cells));
  }
  return table.text();
}

std::string text_of(const MadeSchedule& made, const Scenario& scenario,
                    const ScheduleRecord& record, const Options& options) {
  const Schedule& schedule = made.schedule;
  return fmt::format("{} on {}: {}, {}, {}; simulated, {}\n\n", schedule.name, scenario.name,
                     counted(schedule.devices, "device"), counted(schedule.chunks, "chunk"),
                     counted(schedule.microbatches, "microbatch"), options.comm) +
         device_table(schedule, record) + '\n' + table_text({&record, 1}, scenario) +
         resource_table_text({&record, 1}) + planning_text(made) + ignored_text(scenario);
}

}  // namespace

Answer schedule_command(const Options& options) {
  const Scenario scenario = scenario_of(options);
  const bool written = !options.out.empty();
  if (written) require_new_file(options.out);
  const CsvFormat format = csv_format_of(options.format);
  const PlannerOptions planner = planner_options_of(options);
  const MadeSchedule made = choose_schedule(options.schedule, scenario, planner);
  const Schedule& schedule = made.schedule;
  const std::string csv = written ? write_csv(schedule, format) : std::string{};
  Timeline timeline;
  const ScheduleRecord record = evaluate(made, scenario, planner.search.arrangement, timeline);
  Answer answer;
  if (options.json) {
    nlohmann::ordered_json json = record_header(options, scenario);
    json["schedules"] = nlohmann::ordered_json::array({to_json(record)});
    if (made.found) json["schedules"][0]["planning"] = planning_json(made);
    if (written) json["out"] = options.out;
    answer.text = json_text(json);
  } else {
    answer.text = text_of(made, scenario, record, options);
    if (written) answer.text += fmt::format("\nwrote {}\n", options.out);
  }
  if (written) write_new_file(options.out, [&](std::ostream& out) { out << csv; });
  return answer;
}

}  // namespace longhaul
