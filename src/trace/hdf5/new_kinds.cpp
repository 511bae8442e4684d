#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <hdf5.h>

#include "base/index.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::trace::hdf5 {
namespace {

std::size_t column_of_kinds() {
  const auto columns = timeline_columns();
  return to_size(std::ranges::find(columns, ColumnType::row_kind, &Column::type) - columns.begin());
}

/// A file may name a kind anything: what is not ASCII or moves a terminal's cursor is '?'.
std::string printable(std::string name) {
  std::ranges::replace_if(
      name, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return name;
}

}  // namespace

/// Rows of kinds that the file names and this program does not know are left out. A number that no
/// one names stays, and is a fault of the file.
void TimelineReader::find_new_kinds() {
  const std::size_t kind = column_of_kinds();
  std::array<const char*, 256> name_of{};
  const auto names = members_of(columns_[kind]->type.get());
  for (const auto& [name, number] : names)
    if (!is_listed(static_cast<RowKind>(number))) name_of[number] = name.c_str();
  if (std::ranges::none_of(name_of, [](const char* name) { return name != nullptr; })) return;
  std::array<std::uint64_t, 256> rows_of{};
  std::vector<std::uint64_t> known_before;
  std::vector<TimelineRow> rows;
  for (std::uint64_t first = 0; first < stored_rows_; first += rows.size()) {
    known_before.push_back(rows_ - (stored_rows_ - first));
    rows.resize(to_size(std::min<std::uint64_t>(stored_rows_ - first, kTraceChunkRows)));
    read_column(kind, first, rows);
    for (const TimelineRow& row : rows) {
      const auto number = static_cast<std::size_t>(row.kind);
      if (name_of[number] == nullptr) continue;
      ++rows_of[number];
      --rows_;
    }
  }
  for (std::size_t number = 0; number < rows_of.size(); ++number)
    if (rows_of[number] > 0)
      names_.left_out.push_back(
          {static_cast<int>(number), printable(name_of[number]), rows_of[number]});
  if (!names_.left_out.empty()) known_before_ = std::move(known_before);
}

std::vector<TimelineRow> TimelineReader::known_rows_of(std::size_t block) const {
  const std::uint64_t first = block * kTraceChunkRows;
  std::vector<TimelineRow> rows(
      to_size(std::min<std::uint64_t>(stored_rows_ - first, kTraceChunkRows)));
  read_stored(first, rows);
  std::erase_if(rows, [&](const TimelineRow& row) {
    return std::ranges::find(names_.left_out, static_cast<int>(row.kind), &RowsLeftOut::kind) !=
           names_.left_out.end();
  });
  return rows;
}

}  // namespace longhaul::trace::hdf5
