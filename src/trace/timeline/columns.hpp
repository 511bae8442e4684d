#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

enum class ColumnType : std::uint8_t {
  int32,
  int64,
  row_kind,
  row_leg,
  bound_kind,
  level,   ///< a NetworkLevel as int32; -1: none
  outcome  ///< an Outcome as int32
};
[[nodiscard]] std::size_t size_of(ColumnType type);

/// One member of TimelineRow: a dataset of a trace, a column of its CSV.
struct Column {
  const char* name;
  ColumnType type;
  std::size_t offset;  ///< in TimelineRow
  /// The version of the schema that brought it. A column that is not of the first one is stored
  /// where a row says something in it: elsewhere each row has what a TimelineRow has by itself.
  int since;
};
/// In the order of TimelineRow.
[[nodiscard]] std::span<const Column> timeline_columns();
inline constexpr int kFirstSchema = 2;
[[nodiscard]] constexpr bool may_be_empty(const Column& column) {
  return column.since > kFirstSchema;
}

/// A bit for each of timeline_columns().
using ColumnSet = std::uint64_t;
/// The columns in which one of `rows` at least says something; those of the first schema always.
[[nodiscard]] ColumnSet columns_in_use(std::span<const TimelineRow> rows);
/// Gives `rows` the values of `from` in these columns.
void fill(const TimelineRow& from, ColumnSet columns, std::span<TimelineRow> rows);

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
  int since;            ///< version of the schema, as Column's
};
[[nodiscard]] std::span<const NameColumn> name_columns();

/// A table of names that only grows, and the place of each name in it. Refers to `names`, to which
/// no one else may append meanwhile. Where a table holds a name twice, the first place counts.
class NameTable {
public:
  explicit NameTable(std::vector<std::string>& names) : names_{names} {
    for (std::size_t i = 0; i < names.size(); ++i)
      index_.try_emplace(names[i], static_cast<std::int32_t>(i));
  }
  /// Appends the name where it is new.
  std::int32_t index_of(const std::string& name) {
    const auto [at, is_new] = index_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return at->second;
  }
  /// Takes names back that were appended last.
  void shrink_to(std::size_t count) {
    for (; names_.size() > count; names_.pop_back()) {
      const auto at = index_.find(names_.back());
      if (at != index_.end() && std::cmp_equal(at->second, names_.size() - 1)) index_.erase(at);
    }
  }

private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::int32_t> index_;
};

}  // namespace longhaul::trace
