#include <algorithm>

#include <hdf5.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::trace::hdf5 {
namespace {

constexpr std::size_t kSlabRows = 16 * kTraceChunkRows;  ///< copied at a time
/// Shuffled columns of small numbers gain nothing worth the time from higher levels.
constexpr unsigned kDeflateLevel = 1;

Handle plain_properties() {
  Handle properties{H5Pcreate(H5P_DATASET_CREATE), H5Pclose};
  check(H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER));
  return properties;
}

Handle compressed_properties(hsize_t chunk_rows) {
  Handle properties = plain_properties();
  check(H5Pset_chunk(properties.get(), 1, &chunk_rows));
  check(H5Pset_shuffle(properties.get()));
  check(H5Pset_deflate(properties.get(), kDeflateLevel));
  return properties;
}

/// The same for a column that holds what a row has by itself wherever nothing is stored.
Handle properties_of(const Column& column, const Handle& properties) {
  static const TimelineRow kSaysNothing;
  Handle own{H5Pcopy(properties.get()), H5Pclose};
  if (!may_be_empty(column)) return own;
  check(H5Pset_fill_value(own.get(), column_type(column.type).get(),
                          reinterpret_cast<const std::byte*>(&kSaysNothing) + column.offset));
  check(H5Pset_fill_time(own.get(), H5D_FILL_TIME_IFSET));
  return own;
}

Handle create_dataset(Id group, const char* name, Id type, hsize_t rows, hsize_t most_rows,
                      const Handle& properties) {
  const Handle space{H5Screate_simple(1, &rows, &most_rows), H5Sclose};
  return {H5Dcreate2(group, name, type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
          H5Dclose};
}

void write_rows(Id dataset, Id type, hsize_t first, hsize_t count, const void* values) {
  const Handle space{H5Dget_space(dataset), H5Sclose};
  const Handle memory{H5Screate_simple(1, &count, nullptr), H5Sclose};
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr));
  check(H5Dwrite(dataset, type, memory.get(), space.get(), H5P_DEFAULT, values));
}

bool holds(ColumnSet columns, std::size_t place) { return (columns >> place & 1U) != 0; }

/// The columns to be stored of each slab.
std::vector<ColumnSet> columns_of_slabs(std::span<const TimelineRow> rows) {
  std::vector<ColumnSet> all;
  for (std::size_t first = 0; first < rows.size(); first += kSlabRows)
    all.push_back(columns_in_use(rows.subspan(first, std::min(kSlabRows, rows.size() - first))));
  return all;
}

void write_column(Id group, std::span<const TimelineRow> rows, std::size_t place,
                  std::span<const ColumnSet> in_use, const Handle& properties,
                  std::vector<std::byte>& buffer) {
  const Column& column = timeline_columns()[place];
  const Handle type = column_type(column.type);
  Handle dataset = create_dataset(group, column.name, type.get(), rows.size(), rows.size(),
                                  properties_of(column, properties));
  for (std::size_t first = 0; first < rows.size(); first += kSlabRows) {
    if (!holds(in_use[first / kSlabRows], place)) continue;
    const auto slab = rows.subspan(first, std::min(kSlabRows, rows.size() - first));
    buffer.resize(slab.size() * size_of(column.type));
    gather(slab, column, buffer);
    write_rows(dataset.get(), type.get(), first, slab.size(), buffer.data());
  }
  dataset.close();
}

void write_names(Id group, const char* name, const std::vector<std::string>& names) {
  std::size_t longest = 1;
  for (const std::string& text : names) longest = std::max(longest, text.size());
  std::string packed(longest * names.size(), '\0');
  for (std::size_t i = 0; i < names.size(); ++i) names[i].copy(&packed[i * longest], longest);
  const Handle type = string_type(longest);
  Handle dataset =
      create_dataset(group, name, type.get(), names.size(), names.size(), plain_properties());
  if (!names.empty())
    check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, packed.data()));
  dataset.close();
}

void write_tables(Id group, const Timeline& timeline,
                  EmptyColumns empty = EmptyColumns::are_there) {
  for (const NameColumn& table : name_columns())
    if (empty == EmptyColumns::are_there || table.since == kFirstSchema ||
        !(timeline.*table.names).empty())
      write_names(group, table.name, timeline.*table.names);
}

Handle create_group(Id file, const char* name) {
  return {H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose};
}

}  // namespace

void write_timeline(Id file, const char* group, const Timeline& timeline, Storage storage,
                    std::size_t chunk_rows, EmptyColumns empty) {
  Handle where = create_group(file, group);
  write_tables(where.get(), timeline, empty);
  std::vector<std::byte> buffer;
  const Handle properties = storage == Storage::plain || timeline.rows.empty()
                                ? plain_properties()
                                : compressed_properties(std::min(timeline.rows.size(), chunk_rows));
  const auto in_use = columns_of_slabs(timeline.rows);
  ColumnSet there = empty == EmptyColumns::are_there ? ~ColumnSet{0} : columns_in_use({});
  for (const ColumnSet& columns : in_use) there |= columns;
  for (std::size_t place = 0; place < timeline_columns().size(); ++place)
    if (holds(there, place))
      write_column(where.get(), timeline.rows, place, in_use, properties, buffer);
  where.close();
}

TimelineWriter::TimelineWriter(Id file, const char* group) : group_{create_group(file, group)} {
  const Handle properties = compressed_properties(kTraceChunkRows);
  for (const Column& column : timeline_columns())
    columns_.push_back(create_dataset(group_.get(), column.name, column_type(column.type).get(), 0,
                                      H5S_UNLIMITED, properties_of(column, properties)));
}

void TimelineWriter::append(std::span<const TimelineRow> rows) {
  while (!rows.empty()) {
    const auto part = rows.first(std::min(rows.size(), kTraceChunkRows - pending_.size()));
    pending_.insert(pending_.end(), part.begin(), part.end());
    rows = rows.subspan(part.size());
    if (pending_.size() == kTraceChunkRows) write_pending();
  }
}

void TimelineWriter::set_extent(std::uint64_t rows) {
  const hsize_t extent = rows;
  for (const Handle& column : columns_) check(H5Dset_extent(column.get(), &extent));
}

void TimelineWriter::write_pending() {
  if (written_ <= kept_ && kept_ < rows())
    stashed_.assign(pending_.begin(),
                    pending_.begin() + static_cast<std::ptrdiff_t>(kept_ - written_));
  set_extent(rows());
  const ColumnSet in_use = columns_in_use(pending_);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!holds(in_use, i)) continue;
    const Column& column = timeline_columns()[i];
    buffer_.resize(pending_.size() * size_of(column.type));
    gather(pending_, column, buffer_);
    write_rows(columns_[i].get(), column_type(column.type).get(), written_, pending_.size(),
               buffer_.data());
  }
  written_ = rows();
  pending_.clear();
}

void TimelineWriter::keep_rows() {
  kept_ = rows();
  stashed_.clear();
}

void TimelineWriter::drop_rows() {
  if (kept_ >= written_) {
    pending_.resize(to_size(kept_ - written_));
    return;
  }
  // Whole chunks were written since: back to the last one before, and the rows pending after it.
  written_ = kept_ - stashed_.size();
  set_extent(written_);
  pending_ = stashed_;
}

void TimelineWriter::finish(const Timeline& names) {
  if (!pending_.empty()) write_pending();
  for (Handle& column : columns_) column.close();
  columns_.clear();
  write_tables(group_.get(), names);
  group_.close();
}

}  // namespace longhaul::trace::hdf5
