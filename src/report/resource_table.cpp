#include "report/resource_table.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/table.hpp"

namespace longhaul {
namespace {

constexpr std::size_t kMostRows = 8;

double busy_ratio(const ResourceUse& use, const ScheduleRecord& record) {
  if (record.makespan_ns <= 0) return 0.0;
  return static_cast<double>(use.busy.count()) / static_cast<double>(record.makespan_ns);
}

/// A resource under every schedule; ones that a schedule does not have are idle under it.
struct Row {
  std::string resource;
  std::vector<double> ratios;  ///< index: schedule
  [[nodiscard]] double largest() const { return *std::ranges::max_element(ratios); }
};

/// Those that are busy under some schedule, the busiest first.
std::vector<Row> busy_rows(std::span<const ScheduleRecord> records) {
  std::vector<Row> rows;
  std::map<std::string, std::size_t> row_of;
  for (std::size_t r = 0; r < records.size(); ++r) {
    for (const ResourceUse& use : records[r].resources) {
      const auto [at, is_new] = row_of.try_emplace(use.name, rows.size());
      if (is_new) rows.push_back({use.name, std::vector<double>(records.size(), 0.0)});
      rows[at->second].ratios[r] = busy_ratio(use, records[r]);
    }
  }
  std::erase_if(rows, [](const Row& row) { return row.largest() <= 0.0; });
  std::ranges::stable_sort(rows, std::ranges::greater{}, &Row::largest);
  return rows;
}

}  // namespace

nlohmann::ordered_json resources_json(const ScheduleRecord& record) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ResourceUse& use : record.resources) {
    json.push_back({{"resource", use.name},
                    {"busy_ns", use.busy.count()},
                    {"busy_ratio", busy_ratio(use, record)},
                    {"holds", use.holds}});
  }
  return json;
}

std::string resource_table_text(std::span<const ScheduleRecord> records) {
  const std::vector<Row> rows = busy_rows(records);
  if (rows.empty()) return {};
  std::vector<Table::Column> columns{{"busy [%]", Align::left}};
  for (const ScheduleRecord& record : records) columns.push_back({record.schedule});
  Table table{columns};
  for (const Row& row : std::span{rows}.first(std::min(rows.size(), kMostRows))) {
    std::vector<std::string> cells{row.resource};
    for (const double ratio : row.ratios) cells.push_back(percent_text(ratio));
    table.add_row(std::move(cells));
  }
  std::string text = "\nHow busy links, interfaces and collectives were, the busiest first:\n";
  text += table.text();
  if (rows.size() > kMostRows)
    text += fmt::format("and {} more that are less busy\n", rows.size() - kMostRows);
  return text;
}

}  // namespace longhaul
