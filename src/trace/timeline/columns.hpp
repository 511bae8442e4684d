#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

enum class ColumnType : std::uint8_t { int32, int64, row_kind, row_leg, bound_kind };
[[nodiscard]] std::size_t size_of(ColumnType type);

/// One member of TimelineRow: a dataset of a trace, a column of its CSV.
struct Column {
  const char* name;
  ColumnType type;
  std::size_t offset;  ///< in TimelineRow
};
/// In the order of TimelineRow.
[[nodiscard]] std::span<const Column> timeline_columns();

/// Copies one member of `rows` to, or from, densely packed `values`.
void gather(std::span<const TimelineRow> rows, const Column& column, std::span<std::byte> values);
void scatter(std::span<const std::byte> values, const Column& column, std::span<TimelineRow> rows);

/// A column of positions, and the table of names to which they refer.
struct NameColumn {
  const char* name;
  const char* column;
  std::vector<std::string> Timeline::*names;
  std::int32_t TimelineRow::*index;
  std::int32_t lowest;  ///< -1 where a row may have none
};
[[nodiscard]] std::span<const NameColumn> name_columns();

}  // namespace longhaul::trace
