#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/trace/trace_source.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

/// A step of a critical path with the row that it stands for.
struct PathRow {
  trace::PathStep step;
  TimelineRow row;
};

constexpr std::size_t kLineWidth = 100;

const TimelineRow& row_of(std::span<const TimelineRow> rows, std::int64_t op) {
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), op,
                       [](const TimelineRow& row, std::int64_t wanted) { return row.op < wanted; });
  LONGHAUL_ASSERT(found != rows.end() && found->op == op, "op {} is on the path, not in the rows",
                  op);
  return *found;
}

std::int64_t crossings_of(const std::vector<PathRow>& path) {
  return std::count_if(path.begin(), path.end(),
                       [](const PathRow& each) { return each.step.crosses_datacenters; });
}

/// The step to a block from the block before it on the path.
struct Hop {
  bool message = false;
  bool crosses = false;
  [[nodiscard]] const char* text() const {
    if (crosses) return "=WAN=> ";
    return message ? "-> " : "> ";
  }
};

std::string path_block_text(const TimelineRow& row) {
  const std::string part =
      row.parts == 1 ? std::string{} : fmt::format(".{}/{}", row.part + 1, row.parts);
  return fmt::format("{}:{}{}{}{}", row.rank, row.chunk, to_string(row.kind), row.microbatch, part);
}

std::string collective_text(const TimelineRow& row) {
  return fmt::format("{}:{}({})", row.rank, to_string(row.kind), row.chunk);
}

/// Critical path of the rows of one iteration, in order of time.
std::vector<PathRow> path_rows(std::span<const TimelineRow> rows) {
  std::vector<PathRow> path;
  for (const trace::PathStep& step : trace::critical_path(rows))
    path.push_back({step, row_of(rows, step.op)});
  return path;
}

/// "2 crossings, 12.3 ms of 14.5 ms computing" and the blocks in order, wrapped: device:block, with
/// " > " between blocks of one device, " -> " for a message, " =WAN=> " for one between
/// datacenters.
std::string path_text(const std::vector<PathRow>& path) {
  std::int64_t computing = 0;
  for (const PathRow& each : path) {
    if (is_compute(each.row.kind)) computing += each.step.end_ns - each.step.start_ns;
  }
  const std::int64_t whole =
      path.empty() ? 0 : path.back().step.end_ns - path.front().step.start_ns;
  std::string text = fmt::format("  {}, {} of {} computing (rank:block)\n",
                                 report::counted(crossings_of(path), "WAN crossing"),
                                 to_text(Duration{computing}), to_text(Duration{whole}));
  std::string line = "  ";
  Hop hop;
  bool first = true;
  for (const PathRow& each : path) {
    if (!is_compute(each.row.kind) && !is_collective(each.row.kind)) {
      hop.message = true;
      hop.crosses = hop.crosses || each.step.crosses_datacenters;
      continue;
    }
    const std::string word =
        (first ? "" : hop.text()) +
        (is_compute(each.row.kind) ? path_block_text(each.row) : collective_text(each.row));
    if (line.size() + word.size() + 1 > kLineWidth) {
      text += line + '\n';
      line = "    ";
    }
    line += (line.back() == ' ' ? "" : " ") + word;
    first = false;
    hop = {};
  }
  return text + line + '\n';
}

/// {"wan_crossings", "steps": [{"op", "rank", "kind", ..., "start_ns", "end_ns",
/// "crosses_datacenters"}]}.
nlohmann::ordered_json path_json(const std::vector<PathRow>& path) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const PathRow& each : path) {
    steps.push_back({{"op", each.step.op},
                     {"rank", each.row.rank},
                     {"kind", to_string(each.row.kind)},
                     {"chunk", each.row.chunk},
                     {"microbatch", each.row.microbatch},
                     {"start_ns", each.step.start_ns},
                     {"end_ns", each.step.end_ns},
                     {"crosses_datacenters", each.step.crosses_datacenters}});
  }
  return {{"wan_crossings", crossings_of(path)}, {"steps", std::move(steps)}};
}

/// Device time of one schedule on one side, predicted or measured: the mean over its iterations.
struct Attribution {
  std::string side;
  int iterations = 0;
  double makespan_ns = 0;
  double busy_ns = 0;           ///< summed over devices
  std::vector<double> idle_ns;  ///< in the order of idle_parts(), summed over devices
  double devices = 0;
  /// Of an iteration, by TaskKind, summed over ranks.
  struct Tasks {
    double count = 0, busy_ns = 0, work_ns = 0;
  };
  std::array<Tasks, kCountOf<TaskKind>> tasks;
  int path_iteration = 0;  ///< whose critical path is shown
  std::vector<PathRow> critical_path;
};

std::optional<Attribution> attribution_of(const Timeline& timeline, const std::string& side,
                                          const std::string& schedule, std::int64_t budget_bytes,
                                          std::optional<int> iteration) {
  const auto reports = reports_of(timeline, schedule, budget_bytes);
  if (reports.empty()) return std::nullopt;
  Attribution result;
  result.side = side;
  result.iterations = static_cast<int>(reports.size());
  result.devices = static_cast<double>(reports.front().bubble_ratio.size());
  result.idle_ns.assign(trace::idle_parts().size(), 0.0);
  const double share = 1.0 / static_cast<double>(reports.size());
  for (const trace::IterationReport& report : reports) {
    const double makespan = static_cast<double>(report.makespan_ns);
    result.makespan_ns += share * makespan;
    result.busy_ns +=
        share * (result.devices * makespan - static_cast<double>(report.idle.total()));
    for (std::size_t p = 0; p < result.idle_ns.size(); ++p)
      result.idle_ns[p] += share * static_cast<double>(report.idle.*trace::idle_parts()[p].member);
    for (std::size_t kind = 0; kind < result.tasks.size(); ++kind) {
      result.tasks[kind].count += share * static_cast<double>(report.tasks[kind].tasks);
      result.tasks[kind].busy_ns += share * static_cast<double>(report.tasks[kind].busy_ns);
      result.tasks[kind].work_ns += share * static_cast<double>(report.tasks[kind].work_ns);
    }
  }
  result.path_iteration = iteration.value_or(nearest_to_median(reports));
  const auto rows =
      trace::rows_of(timeline, *position_of(timeline, schedule), result.path_iteration);
  result.critical_path = path_rows(rows);
  return result;
}

/// Time in which a rank does such beside its blocks.
constexpr std::array kTaskRows{
    std::pair{TaskKind::host_task, "host tasks"}, std::pair{TaskKind::copy, "copies"},
    std::pair{TaskKind::copy_out, "copies out"},  std::pair{TaskKind::host_gather, "gathers"},
    std::pair{TaskKind::compress, "compression"}, std::pair{TaskKind::merge, "merges"},
    std::pair{TaskKind::optimize, "optimizer"},   std::pair{TaskKind::copy_in, "copies in"},
    std::pair{TaskKind::prefill, "prefill"}};

std::string table_of(const std::vector<Attribution>& sides) {
  double largest = 0;
  for (const Attribution& side : sides) largest = std::max(largest, side.makespan_ns);
  const report::TimeScale scale{largest};
  std::vector<Table::Column> columns{{"device time", Align::left}};
  for (const Attribution& side : sides) {
    columns.push_back({fmt::format("{} [{}]", side.side, scale.unit())});
    columns.push_back({"[%]"});
  }
  Table table{columns};
  const auto add_row = [&](const char* name, auto&& value_of) {
    std::vector<std::string> cells{name};
    for (const Attribution& side : sides) {
      const double of_device = value_of(side) / side.devices;
      cells.push_back(scale.text(of_device));
      cells.push_back(
          report::percent_text(side.makespan_ns > 0 ? of_device / side.makespan_ns : 0));
    }
    table.add_row(std::move(cells));
  };
  add_row("busy", [](const Attribution& side) { return side.busy_ns; });
  for (std::size_t p = 0; p < trace::idle_parts().size(); ++p) {
    const bool anywhere = std::any_of(sides.begin(), sides.end(),
                                      [&](const auto& side) { return side.idle_ns[p] != 0; });
    if (anywhere)
      add_row(trace::idle_parts()[p].name,
              [&](const Attribution& side) { return side.idle_ns[p]; });
  }
  add_row("makespan", [](const Attribution& side) { return side.makespan_ns * side.devices; });
  for (const auto& [kind, name] : kTaskRows)
    if (std::ranges::any_of(sides, [&](const auto& s) { return s.tasks[index(kind)].count > 0; }))
      add_row(name, [&](const Attribution& side) { return side.tasks[index(kind)].busy_ns; });
  return table.text();
}

std::string text_of(const std::string& schedule, const std::vector<Attribution>& sides) {
  std::string text = fmt::format("{}: time of a device, mean over devices", schedule);
  for (const Attribution& side : sides) {
    if (side.side == "measured")
      text += fmt::format(" and {} iteration{}", side.iterations, side.iterations == 1 ? "" : "s");
  }
  text += "\n\n" + table_of(sides);
  for (const Attribution& side : sides) {
    text += fmt::format(
        "\ncritical path, {}{}:\n", side.side,
        side.side == "measured" ? fmt::format(", iteration {}", side.path_iteration) : "");
    text += path_text(side.critical_path);
  }
  return text;
}

ordered_json to_json(const Attribution& side) {
  ordered_json json;
  json["iterations"] = side.iterations;
  json["devices"] = side.devices;
  json["makespan_ns"] = side.makespan_ns;
  json["busy_ns"] = side.busy_ns;
  json["idle"] = ordered_json::object();
  for (std::size_t p = 0; p < trace::idle_parts().size(); ++p)
    if (!trace::idle_parts()[p].of_tasks || side.idle_ns[p] != 0)
      json["idle"][trace::idle_parts()[p].name] = side.idle_ns[p];
  for (const TaskKind kind : every<TaskKind>()) {
    const Attribution::Tasks& use = side.tasks[index(kind)];
    if (use.count > 0)
      json["tasks"][to_string(kind)] = {
          {"tasks", use.count}, {"busy_ns", use.busy_ns}, {"work_ns", use.work_ns}};
  }
  json["critical_path"] = path_json(side.critical_path);
  json["critical_path"]["iteration"] = side.path_iteration;
  return json;
}

}  // namespace

Answer trace_attribution_command(const Options& options) {
  const trace::Trace trace = load_trace(options.files.front(), options);
  const std::int64_t budget = trace.info.activation_budget_bytes;
  ordered_json json = report::record_header();
  json["trace"] = options.files.front();
  json["schedules"] = ordered_json::array();
  std::string text;
  const std::vector<std::string> schedules = traced_schedules(trace, options);
  require_iteration(trace, schedules, options);
  for (const std::string& schedule : schedules) {
    std::vector<Attribution> sides;
    ordered_json entry{{"schedule", schedule}};
    const auto add_side = [&](const Timeline& timeline, const char* side,
                              std::optional<int> iteration) {
      const auto found = attribution_of(timeline, side, schedule, budget, iteration);
      entry[side] = found ? to_json(*found) : ordered_json(nullptr);
      if (found) sides.push_back(*found);
    };
    add_side(trace.predicted, "predicted", std::nullopt);
    add_side(trace.measured, "measured", options.iteration);
    json["schedules"].push_back(std::move(entry));
    if (sides.empty()) continue;
    if (!text.empty()) text += '\n';
    text += text_of(schedule, sides);
  }
  return {options.json ? report::json_text(json) : text};
}

}  // namespace longhaul::cli
