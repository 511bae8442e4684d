#include <cstring>
#include <limits>
#include <string>

#include "base/index.hpp"
#include "trace/export/export.hpp"
#include "trace/export/text_writer.hpp"
#include "trace/report/report.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::trace {
namespace {

template <typename Value>
Value member(const TimelineRow& row, const Column& column) {
  Value value;
  std::memcpy(&value, reinterpret_cast<const std::byte*>(&row) + column.offset, sizeof value);
  return value;
}

/// A column with the names that its numbers stand for.
struct CsvColumn {
  Column column;
  bool named = false;
  std::vector<std::string> names;
};

void print_cell(TextWriter& out, const CsvColumn& csv, const TimelineRow& row) {
  const auto print_int32 = [&](std::int32_t value) {
    if (!csv.named) return out.print(",{}", value);
    out.print(",{}", value < 0 ? "" : csv.names.at(to_size(value)));
  };
  switch (csv.column.type) {
    case ColumnType::row_kind: return out.print(",{}", longhaul::to_string(row.kind));
    case ColumnType::row_leg: return out.print(",{}", longhaul::to_string(row.leg));
    case ColumnType::bound_kind: return out.print(",{}", longhaul::to_string(row.bound_kind));
    case ColumnType::level: {
      const bool none = row.level < 0;
      return out.print(",{}",
                       none ? "" : longhaul::to_string(static_cast<NetworkLevel>(row.level)));
    }
    case ColumnType::outcome:
      return out.print(",{}", longhaul::to_string(static_cast<Outcome>(row.outcome)));
    case ColumnType::int64: return out.print(",{}", member<std::int64_t>(row, csv.column));
    case ColumnType::int32: return print_int32(member<std::int32_t>(row, csv.column));
  }
}

std::vector<CsvColumn> columns_of(const Timeline& timeline) {
  std::vector<CsvColumn> columns;
  for (const Column& column : timeline_columns()) {
    CsvColumn& csv = columns.emplace_back();
    csv.column = column;
    for (const NameColumn& table : name_columns()) {
      if (std::strcmp(table.column, column.name) != 0) continue;
      csv.named = true;
      for (const std::string& name : timeline.*table.names) csv.names.push_back(csv_cell(name));
    }
  }
  return columns;
}

}  // namespace

void export_csv(const Trace& trace, const Selection& selection, std::ostream& out) {
  require_rows(trace, selection);
  TextWriter writer{out, std::numeric_limits<std::int64_t>::max()};
  writer.print("source");
  for (const Column& column : timeline_columns()) writer.print(",{}", column.name);
  writer.print("\n");
  for (const Source& source : sources_of(trace)) {
    const std::vector<CsvColumn> columns = columns_of(*source.timeline);
    for (const auto& [schedule, iteration] : selected_iterations(source, selection)) {
      for (const TimelineRow& row : rows_of(*source.timeline, schedule, iteration)) {
        writer.print("{}", source.name);
        for (const CsvColumn& column : columns) print_cell(writer, column, row);
        writer.print("\n");
      }
    }
  }
  writer.flush();
}

}  // namespace longhaul::trace
