#include "report/bound_table.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/table.hpp"
#include "schedule/memory.hpp"

namespace longhaul {
namespace {

/// A bound with the schedules that are held against it.
struct Line {
  Bound bound;
  std::vector<std::string> schedules;
};

}  // namespace

Bound bound_of(const Schedule& schedule, const Scenario& scenario) {
  const auto budget = static_cast<double>(scenario.activation_budget().count());
  if (budget <= 0 || over_budget(schedule, scenario).empty())
    return lower_bound(schedule, scenario);
  const auto peak =
      static_cast<double>(std::ranges::max(peak_activation(schedule, scenario)).count());
  Scenario wider = scenario;
  wider.memory.budget *= peak / budget;
  // Rounding may leave it a byte short.
  if (!over_budget(schedule, wider).empty()) wider.memory.budget *= (peak + 1) / peak;
  return lower_bound(schedule, wider);
}

std::string bound_table_text(std::span<const ScheduleRecord> records) {
  std::vector<Line> lines;
  for (const ScheduleRecord& record : records) {
    const auto same = std::ranges::find_if(lines, [&](const Line& line) {
      return line.bound.lower_bound == record.bound.lower_bound &&
             line.bound.holds_for == record.bound.holds_for;
    });
    if (same == lines.end()) {
      lines.push_back({record.bound, {record.schedule}});
    } else {
      same->schedules.push_back(record.schedule);
    }
  }
  if (lines.empty()) return {};
  std::int64_t largest = 0;
  for (const ScheduleRecord& record : records) largest = std::max(largest, record.makespan_ns);
  const TimeScale scale{static_cast<double>(largest)};
  Table table{{{fmt::format("bound [{}]", scale.unit())},
               {"no schedule ends before, of", Align::left},
               {"because of", Align::left},
               {"here", Align::left}}};
  for (const Line& line : lines)
    table.add_row({scale.text(static_cast<double>(line.bound.lower_bound.count())),
                   line.bound.holds_for, line.bound.reason,
                   fmt::format("{}", fmt::join(line.schedules, " "))});
  return "\nWhat gaps are to:\n" + table.text();
}

}  // namespace longhaul
