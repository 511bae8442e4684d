#include <algorithm>
#include <optional>

#include <hdf5.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::trace::hdf5 {
namespace {

std::uint64_t checked_column_length(Id group, const Column& column, std::uint64_t file_bytes) {
  const Handle dataset = open_dataset(group, column.name);
  const Handle stored{H5Dget_type(dataset.get()), H5Tclose};
  const auto new_kinds =
      column.type == ColumnType::row_kind ? NewKinds::allowed : NewKinds::refused;
  if (!is_readable_as(stored.get(), column_type(column.type).get(), new_kinds))
    fail("it has another type than it should");
  return checked_length(dataset.get(), file_bytes,
                        may_be_empty(column) ? Stored::where_it_differs : Stored::all_of_it);
}

/// Runs one step on one member; what it throws becomes a finding about that member.
template <typename Step>
void guarded(const char* group, const char* member, Diagnostics& findings, Step&& step) {
  try {
    step();
  } catch (const Error& error) {
    findings.add("members that cannot be read",
                 fmt::format("{}/{} cannot be read ({}).", group, member, error.what()));
  }
}

/// May, and does, a group of this format lack a column or a table?
template <typename Member>
bool lacks(Id group, const Member& member, const TimelineReader::Format& format) {
  if (member.since > format.schema) return true;
  return format.empty == EmptyColumns::are_left_out && member.since > kFirstSchema &&
         !has_member(group, member.name);
}

/// The length that all columns have; none: they differ or cannot be read.
std::optional<std::uint64_t> common_length(Id group, const char* name,
                                           const TimelineReader::Format& format,
                                           std::uint64_t file_bytes, Diagnostics& findings) {
  std::optional<std::uint64_t> common;
  bool sound = true;
  for (const Column& column : timeline_columns()) {
    if (lacks(group, column, format)) continue;
    std::optional<std::uint64_t> length;
    guarded(name, column.name, findings,
            [&] { length = checked_column_length(group, column, file_bytes); });
    sound = sound && length.has_value();
    if (!common) common = length;
    if (!length || *length == *common) continue;
    sound = false;
    findings.add("columns of another length",
                 fmt::format("{}/{} has {} values ({}/schedule has {}).", name, column.name,
                             *length, name, *common));
  }
  return sound ? common : std::nullopt;
}

/// Opens a dataset so that it holds one chunk in memory, whatever that takes.
Handle open_for_reading(Id group, const char* name) {
  const std::size_t bytes = chunk_bytes(open_dataset(group, name).get());
  const Handle access{H5Pcreate(H5P_DATASET_ACCESS), H5Pclose};
  check(H5Pset_chunk_cache(access.get(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, bytes, 1.0));
  return {H5Dopen2(group, name, access.get()), H5Dclose};
}

/// The value of a column where nothing is stored.
void get_fill_value(const Handle& dataset, const Column& column, TimelineRow& row) {
  const Handle properties{H5Dget_create_plist(dataset.get()), H5Pclose};
  const Handle type = column_type(column.type);
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  check(H5Pfill_value_defined(properties.get(), &defined));
  if (defined == H5D_FILL_VALUE_UNDEFINED) fail("it has no value where nothing is stored");
  check(H5Pget_fill_value(properties.get(), type.get(),
                          reinterpret_cast<std::byte*>(&row) + column.offset));
}

}  // namespace

TimelineReader::TimelineReader(Id file, const char* group, const Format& format,
                               std::uint64_t file_bytes, Diagnostics& findings)
    : group_name_{group} {
  guarded(group, "", findings, [&] {
    const Handle opened = open_member(file, group);
    if (H5Iget_type(opened.get()) != H5I_GROUP) fail("it is no group");
    for (const NameColumn& table : name_columns()) {
      if (lacks(opened.get(), table, format)) continue;
      guarded(group, table.name, findings,
              [&] { names_.*table.names = read_names(opened.get(), table.name, file_bytes); });
    }
    const auto length = common_length(opened.get(), group, format, file_bytes, findings);
    if (!length) return;
    for (const Column& column : timeline_columns()) {
      const std::size_t before = columns_.size();
      guarded(group, column.name, findings,
              [&] { open_column(opened.get(), column, lacks(opened.get(), column, format)); });
      if (columns_.size() == before) return columns_.clear();
    }
    stored_rows_ = rows_ = *length;
    find_new_kinds();
  });
}

void TimelineReader::open_column(Id group, const Column& column, bool lacking) {
  const std::size_t place = columns_.size();
  if (!lacking) {
    Handle dataset = open_for_reading(group, column.name);
    if (may_be_empty(column)) get_fill_value(dataset, column, unstored_);
    if (!may_be_empty(column) || H5Dget_storage_size(dataset.get()) > 0) {
      Handle space{H5Dget_space(dataset.get()), H5Sclose};
      Handle type{H5Dget_type(dataset.get()), H5Tclose};  // of the file: no conversion
      columns_.push_back(OpenColumn{std::move(dataset), std::move(type), std::move(space)});
      return;
    }
  }
  columns_.emplace_back();
  not_stored_ |= ColumnSet{1} << place;
}

void TimelineReader::read_column(std::size_t column, std::uint64_t first,
                                 std::span<TimelineRow> rows) const {
  const Column& what = timeline_columns()[column];
  const OpenColumn& from = *columns_[column];
  const hsize_t begin = first;
  const hsize_t count = rows.size();
  const Handle memory{H5Screate_simple(1, &count, nullptr), H5Sclose};
  check(H5Sselect_hyperslab(from.space.get(), H5S_SELECT_SET, &begin, nullptr, &count, nullptr));
  buffer_.resize(rows.size() * size_of(what.type));
  if (may_be_empty(what)) {  // HDF5 may leave alone what is not stored
    fill(unstored_, ColumnSet{1} << column, rows);
    gather(rows, what, buffer_);
  }
  check(H5Dread(from.dataset.get(), from.type.get(), memory.get(), from.space.get(), H5P_DEFAULT,
                buffer_.data()));
  scatter(buffer_, what, rows);
}

void TimelineReader::read_stored(std::uint64_t first, std::span<TimelineRow> rows) const {
  for (std::size_t column = 0; column < columns_.size(); ++column)
    if (columns_[column]) read_column(column, first, rows);
  fill(unstored_, not_stored_, rows);
}

void TimelineReader::read(std::uint64_t first, std::span<TimelineRow> rows) const {
  LONGHAUL_ASSERT(first + rows.size() <= rows_, "rows {} to {} of {}", first, first + rows.size(),
                  rows_);
  if (known_before_.empty()) return read_stored(first, rows);
  while (!rows.empty()) {
    const auto after = std::ranges::upper_bound(known_before_, first);
    const auto block = to_size(after - known_before_.begin()) - 1;
    const std::vector<TimelineRow> known = known_rows_of(block);
    const std::size_t skipped = to_size(first - known_before_[block]);
    if (skipped >= known.size()) fail("{} is not the file that it was", group_name_);
    const auto some =
        std::span{known}.subspan(skipped).first(std::min(known.size() - skipped, rows.size()));
    std::ranges::copy(some, rows.begin());
    rows = rows.subspan(some.size());
    first += some.size();
  }
}

void TimelineReader::read_keys(std::uint64_t first, std::span<TimelineRow> rows) const {
  if (!known_before_.empty()) return read(first, rows);
  constexpr std::size_t kKeys = 2;  // the first columns
  for (std::size_t column = 0; column < kKeys; ++column) read_column(column, first, rows);
}

void TimelineReader::find_damage(Diagnostics& findings) const {
  std::vector<TimelineRow> rows(std::min<std::uint64_t>(stored_rows_, kTraceChunkRows));
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    if (!columns_[column]) continue;
    guarded(group_name_, timeline_columns()[column].name, findings, [&] {
      for (std::uint64_t first = 0; first < stored_rows_; first += rows.size())
        read_column(
            column, first,
            std::span{rows}.first(std::min<std::uint64_t>(rows.size(), stored_rows_ - first)));
    });
  }
}

void read_all(const TimelineReader& reader, Timeline& timeline, Diagnostics& findings) {
  timeline = reader.names();
  timeline.rows.resize(to_size(reader.rows()));
  const std::span rows{timeline.rows};
  try {
    for (std::size_t first = 0; first < rows.size(); first += kTraceChunkRows)
      reader.read(first, rows.subspan(first, std::min(kTraceChunkRows, rows.size() - first)));
  } catch (const Error&) {
    reader.find_damage(findings);
  }
}

}  // namespace longhaul::trace::hdf5
