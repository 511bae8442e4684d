#include <algorithm>

#include <hdf5.h>

#include "base/error.hpp"
#include "trace/columns.hpp"
#include "trace/hdf5_timeline.hpp"
#include "trace/hdf5_types.hpp"

namespace longhaul::hdf5 {
namespace {

constexpr hsize_t kChunkRows = hsize_t{1} << 16;
constexpr std::size_t kSlabRows = 16 * kChunkRows;  ///< copied at a time
/// Shuffled columns of small numbers gain nothing worth the time from higher levels.
constexpr unsigned kDeflateLevel = 1;

Handle creation_properties(hsize_t rows, Storage storage) {
  Handle properties{H5Pcreate(H5P_DATASET_CREATE), H5Pclose};
  check(H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER));
  if (storage == Storage::plain || rows == 0) return properties;
  const hsize_t chunk = std::min(rows, kChunkRows);
  check(H5Pset_chunk(properties.get(), 1, &chunk));
  check(H5Pset_shuffle(properties.get()));
  check(H5Pset_deflate(properties.get(), kDeflateLevel));
  return properties;
}

Handle create_dataset(Id group, const char* name, Id type, hsize_t rows, Storage storage) {
  const Handle space{H5Screate_simple(1, &rows, nullptr), H5Sclose};
  const Handle properties = creation_properties(rows, storage);
  return {H5Dcreate2(group, name, type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
          H5Dclose};
}

void write_rows(Id dataset, Id type, hsize_t first, hsize_t count, const void* values) {
  const Handle space{H5Dget_space(dataset), H5Sclose};
  const Handle memory{H5Screate_simple(1, &count, nullptr), H5Sclose};
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr));
  check(H5Dwrite(dataset, type, memory.get(), space.get(), H5P_DEFAULT, values));
}

void write_column(Id group, std::span<const TimelineRow> rows, const Column& column,
                  Storage storage, std::vector<std::byte>& buffer) {
  const Handle type = column_type(column.type);
  Handle dataset = create_dataset(group, column.name, type.get(), rows.size(), storage);
  for (std::size_t first = 0; first < rows.size(); first += kSlabRows) {
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
  Handle dataset = create_dataset(group, name, type.get(), names.size(), Storage::plain);
  if (!names.empty())
    check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, packed.data()));
  dataset.close();
}

}  // namespace

void write_timeline(Id file, const char* group, const Timeline& timeline, Storage storage) {
  Handle where{H5Gcreate2(file, group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose};
  for (const NameColumn& table : name_columns())
    write_names(where.get(), table.name, timeline.*table.names);
  std::vector<std::byte> buffer;
  for (const Column& column : timeline_columns())
    write_column(where.get(), timeline.rows, column, storage, buffer);
  where.close();
}

}  // namespace longhaul::hdf5
