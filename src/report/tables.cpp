#include "report/tables.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "schedule/memory.hpp"

namespace longhaul::report {
namespace {

/// A bound with the schedules that are held against it.
struct Line {
  planner::Bound bound;
  std::vector<std::string> schedules;
};

constexpr std::size_t kMostShown = 8;

/// A class without what nearly all have in common: "ud, budget 1".
std::string in_fewer_words(std::string holds_for) {
  for (const std::string_view common :
       {" placement", ", whole blocks or parts", ", not recomputed"}) {
    for (std::size_t at = holds_for.find(common); at != std::string::npos;
         at = holds_for.find(common))
      holds_for.erase(at, common.size());
  }
  return holds_for;
}

double busy_ratio(const plan::ResourceUse& use, const ScheduleRecord& record) {
  if (record.makespan_ns <= 0) return 0.0;
  return static_cast<double>(use.busy.count()) / static_cast<double>(record.makespan_ns);
}

/// A resource under every schedule; ones that a schedule does not have are idle under it.
struct BusyResource {
  std::string name;
  std::vector<double> ratios;  ///< index: schedule
  [[nodiscard]] double largest() const { return *std::ranges::max_element(ratios); }
};

/// Those that are busy under some schedule, the busiest first.
std::vector<BusyResource> busy_rows(std::span<const ScheduleRecord> records) {
  std::vector<BusyResource> rows;
  std::map<std::string, std::size_t> row_of;
  for (std::size_t r = 0; r < records.size(); ++r) {
    for (const plan::ResourceUse& use : records[r].resources) {
      const auto [at, is_new] = row_of.try_emplace(use.name, rows.size());
      if (is_new) rows.push_back({use.name, std::vector<double>(records.size(), 0.0)});
      rows[at->second].ratios[r] = busy_ratio(use, records[r]);
    }
  }
  std::erase_if(rows, [](const BusyResource& resource) { return resource.largest() <= 0.0; });
  std::ranges::stable_sort(rows, std::ranges::greater{}, &BusyResource::largest);
  return rows;
}

const trace::LegUse& use_of(const trace::IterationReport& report, MessageLeg leg) {
  return report.legs[index(leg)];
}

bool relays(const trace::IterationReport& report) {
  return use_of(report, MessageLeg::wan).messages > 0;
}

constexpr std::size_t kMostShownOperators = 12;

/// Of the time of all blocks, that of the operators of a name.
double share_of(const OperatorReport& report, const std::string& name) {
  Duration all{};
  Duration own{};
  for (const OperatorUse& use : report.uses) {
    all += use.busy;
    if (use.name == name) own = use.busy;
  }
  if (all == Duration::zero()) return 0;
  return static_cast<double>(own.count()) / static_cast<double>(all.count());
}

/// Names of operators that take time, by the largest share that they have under any schedule.
std::vector<std::string> operators_by_share(std::span<const ScheduleRecord> records) {
  std::map<std::string, double> shares;
  for (const ScheduleRecord& record : records) {
    if (!record.operators) continue;
    for (const OperatorUse& use : record.operators->uses) {
      double& largest = shares[use.name];
      largest = std::max(largest, share_of(*record.operators, use.name));
    }
  }
  std::erase_if(shares, [](const auto& each) { return each.second <= 0; });
  std::vector<std::pair<std::string, double>> sorted{shares.begin(), shares.end()};
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const auto& one) { return one.second; });
  std::vector<std::string> names;
  for (const auto& [name, share] : sorted) names.push_back(name);
  return names;
}

}  // namespace

planner::Bound bound_of(const Schedule& schedule, const Scenario& scenario) {
  const auto budget = static_cast<double>(scenario.activation_budget().count());
  if (budget <= 0 || schedule::over_budget(schedule, scenario).empty())
    return planner::lower_bound(schedule, scenario);
  const auto peak =
      static_cast<double>(std::ranges::max(schedule::peak_activation(schedule, scenario)).count());
  Scenario wider = scenario;
  wider.memory.budget *= peak / budget;
  // Rounding may leave it a byte short.
  if (!schedule::over_budget(schedule, wider).empty()) wider.memory.budget *= (peak + 1) / peak;
  return planner::lower_bound(schedule, wider);
}

std::string bound_table_text(std::span<const ScheduleRecord> records, TableWidth width) {
  std::vector<Line> lines;
  for (const ScheduleRecord& record : records) {
    if (!record.bound) continue;
    const auto same = std::ranges::find_if(lines, [&](const Line& line) {
      return line.bound.lower_bound == record.bound->lower_bound &&
             line.bound.holds_for == record.bound->holds_for;
    });
    if (same == lines.end()) {
      lines.push_back({*record.bound, {record.schedule}});
    } else {
      same->schedules.push_back(record.schedule);
    }
  }
  if (lines.empty()) return {};
  std::int64_t largest = 0;
  for (const ScheduleRecord& record : records) largest = std::max(largest, record.makespan_ns);
  const TimeScale scale{static_cast<double>(largest)};
  Table table{{{fmt::format("bound [{}]", scale.unit())},
               {"schedules", Align::left},
               {"of all with", Align::left},
               {"because of", Align::left, 1}}};
  for (const Line& line : lines)
    table.add_row({scale.text(static_cast<double>(line.bound.lower_bound.count())),
                   fmt::format("{}", fmt::join(line.schedules, " ")),
                   in_fewer_words(line.bound.holds_for), line.bound.reason});
  return "\nGaps are to bounds of the same placement and memory:\n" + table.text(width);
}

nlohmann::ordered_json resources_json(const ScheduleRecord& record) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const plan::ResourceUse& use : record.resources) {
    json.push_back({{"resource", use.name},
                    {"busy_ns", use.busy.count()},
                    {"busy_ratio", busy_ratio(use, record)},
                    {"holds", use.holds}});
  }
  return json;
}

std::string resource_table_text(std::span<const ScheduleRecord> records, TableWidth width) {
  const std::vector<BusyResource> rows = busy_rows(records);
  if (rows.empty()) return {};
  const std::span shown = std::span{rows}.first(std::min(rows.size(), kMostShown));
  std::vector<Table::Column> columns{{"busy [%]", Align::left}};
  for (const BusyResource& resource : shown) columns.push_back({resource.name, Align::right, 1});
  Table table{columns};
  for (std::size_t r = 0; r < records.size(); ++r) {
    std::vector<std::string> cells{records[r].schedule};
    for (const BusyResource& resource : shown) cells.push_back(percent_text(resource.ratios[r]));
    table.add_row(std::move(cells));
  }
  std::string text = "\nHow busy links, interfaces and collectives were, the busiest first:\n";
  text += table.text(width);
  if (rows.size() > kMostShown)
    text += fmt::format("and {} more that are less busy\n", rows.size() - kMostShown);
  return text;
}

std::string operator_table_text(std::span<const ScheduleRecord> records, TableWidth width) {
  const std::vector<std::string> names = operators_by_share(records);
  if (names.empty()) return {};
  const std::size_t shown = std::min(names.size(), kMostShownOperators);
  std::vector<Table::Column> columns{
      {"of blocks [%]", Align::left}, {"operators"}, {"lists", Align::right, 1}};
  for (std::size_t i = 0; i < shown; ++i) columns.push_back({names[i], Align::right, 2});
  Table table{columns};
  for (const ScheduleRecord& record : records) {
    if (!record.operators) continue;
    const plan::OperatorCount& count = record.operators->count;
    std::vector<std::string> cells{record.schedule, std::to_string(count.operators),
                                   std::to_string(count.lists)};
    for (std::size_t i = 0; i < shown; ++i)
      cells.push_back(percent_text(share_of(*record.operators, names[i])));
    table.add_row(std::move(cells));
  }
  std::string text = "\nWhich operators take the time of the blocks, the longest first:\n";
  text += table.text(width);
  if (shown < names.size()) text += fmt::format("and {} more\n", names.size() - shown);
  return text;
}

nlohmann::ordered_json traffic_json(const std::vector<trace::Traffic>& traffic) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const trace::Traffic& each : traffic)
    json.push_back({{"from", each.from},
                    {"to", each.to},
                    {"message_bytes", each.message_bytes},
                    {"data_parallel_bytes", each.data_parallel_bytes}});
  return json;
}

std::string traffic_table_text(const std::vector<TrafficOfSchedule>& schedules) {
  Table table{{{"schedule", Align::left},
               {"between", Align::left},
               {"messages"},
               {"data parallelism"},
               {"together"}}};
  bool any = false;
  for (const TrafficOfSchedule& each : schedules) {
    for (const trace::Traffic& sent : each.traffic) {
      if (sent.from == sent.to) continue;
      any = true;
      table.add_row({each.schedule, sent.from + ">" + sent.to, to_text(Bytes{sent.message_bytes}),
                     to_text(Bytes{sent.data_parallel_bytes}),
                     to_text(Bytes{sent.message_bytes + sent.data_parallel_bytes})});
    }
  }
  return any ? "\nbytes between datacenters in an iteration\n" + table.text() : "";
}

nlohmann::ordered_json legs_json(const trace::IterationReport& report) {
  nlohmann::ordered_json json;
  for (const MessageLeg leg : every<MessageLeg>()) {
    const trace::LegUse& use = use_of(report, leg);
    json[to_string(leg)] = {
        {"messages", use.messages}, {"bytes", use.bytes}, {"busy_ns", use.busy_ns}};
  }
  return json;
}

std::string leg_table_text(const std::vector<LegsOfSchedule>& schedules) {
  Table table{{{"schedule", Align::left},
               {"leg", Align::left},
               {"messages"},
               {"bytes"},
               {"transfers, sum"}}};
  bool any = false;
  for (const LegsOfSchedule& each : schedules) {
    if (!relays(each.report)) continue;
    any = true;
    for (const MessageLeg leg : every<MessageLeg>()) {
      const trace::LegUse& use = use_of(each.report, leg);
      if (use.messages == 0) continue;
      table.add_row({each.schedule, to_string(leg), std::to_string(use.messages),
                     to_text(Bytes{use.bytes}), to_text(Duration{use.busy_ns})});
    }
  }
  return any ? "\nmessages of an iteration, each once for every leg of its way\n" + table.text()
             : "";
}

std::string interval_text(const SampleSummary& summary, const TimeScale& scale) {
  if (!summary.median_interval) return "- (n < 6)";
  return fmt::format("{} - {}", scale.text(summary.median_interval->low),
                     scale.text(summary.median_interval->high));
}

}  // namespace longhaul::report
