#include <algorithm>
#include <optional>

#include <hdf5.h>

#include "base/error.hpp"
#include "trace/columns.hpp"
#include "trace/hdf5_timeline.hpp"
#include "trace/hdf5_types.hpp"

namespace longhaul::hdf5 {
namespace {

constexpr std::size_t kSlabRows = std::size_t{1} << 20;
constexpr std::size_t kLongestNameBytes = 1 << 16;
constexpr std::size_t kMostNames = 1 << 22;
constexpr hsize_t kLargestChunkBytes = hsize_t{1} << 26;
/// Deflate cannot pack more than 1032 bytes into one: what claims more was never written.
constexpr hsize_t kBestCompression = 1032;

/// Opens a member that lies in this very file: links out of it are not followed.
Handle open_member(Id group, const char* name) {
  H5L_info_t link;
  if (check(H5Lexists(group, name, H5P_DEFAULT)) == 0) fail("it is missing");
  check(H5Lget_info(group, name, &link, H5P_DEFAULT));
  if (link.type != H5L_TYPE_HARD) fail("it is a link to somewhere else");
  return {H5Oopen(group, name, H5P_DEFAULT), H5Oclose};
}

Handle open_dataset(Id group, const char* name) {
  Handle object = open_member(group, name);
  if (H5Iget_type(object.get()) != H5I_DATASET) fail("it is no dataset");
  return object;
}

/// Refuses what could make HDF5 open other files, load plugins or take memory without bound.
void check_storage(Id dataset) {
  const Handle properties{H5Dget_create_plist(dataset), H5Pclose};
  const H5D_layout_t layout = H5Pget_layout(properties.get());
  if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED)
    fail("its layout is neither chunked nor plain");
  if (check(H5Pget_external_count(properties.get())) != 0) fail("its values lie in another file");
  if (layout != H5D_CHUNKED) return;
  hsize_t chunk = 0;
  if (H5Pget_chunk(properties.get(), 1, &chunk) != 1) fail("its chunks have several dimensions");
  const Handle type{H5Dget_type(dataset), H5Tclose};
  if (chunk > kLargestChunkBytes / H5Tget_size(type.get())) fail("its chunks are too large");
  const auto filters = check(H5Pget_nfilters(properties.get()));
  for (unsigned i = 0; i < static_cast<unsigned>(filters); ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(properties.get(), i, &flags, &values, nullptr, 0, nullptr, nullptr);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32)
      fail("it is packed with filter {}", filter);
  }
}

/// Length of a one-dimensional dataset that the file is large enough to hold.
hsize_t checked_length(Id dataset, std::uint64_t file_bytes) {
  const Handle space{H5Dget_space(dataset), H5Sclose};
  if (H5Sget_simple_extent_type(space.get()) != H5S_SIMPLE ||
      H5Sget_simple_extent_ndims(space.get()) != 1)
    fail("it is no list (one dimension)");
  hsize_t length = 0;
  check(H5Sget_simple_extent_dims(space.get(), &length, nullptr));
  check_storage(dataset);
  const Handle type{H5Dget_type(dataset), H5Tclose};
  const hsize_t stored = H5Dget_storage_size(dataset);
  const hsize_t most = std::min<hsize_t>(stored, file_bytes) * kBestCompression;
  if (stored > file_bytes || length > most / H5Tget_size(type.get()))
    fail("it claims {} values, but only {} bytes of the file are theirs", length, stored);
  return length;
}

hsize_t checked_column_length(Id group, const Column& column, std::uint64_t file_bytes) {
  const Handle dataset = open_dataset(group, column.name);
  const Handle stored{H5Dget_type(dataset.get()), H5Tclose};
  if (check(H5Tequal(stored.get(), column_type(column.type).get())) == 0)
    fail("it has another type than it should");
  return checked_length(dataset.get(), file_bytes);
}

void read_column(Id group, const Column& column, std::span<TimelineRow> rows,
                 std::vector<std::byte>& buffer) {
  const Handle dataset = open_dataset(group, column.name);
  const Handle type = column_type(column.type);
  const Handle space{H5Dget_space(dataset.get()), H5Sclose};
  for (std::size_t at = 0; at < rows.size(); at += kSlabRows) {
    const auto slab = rows.subspan(at, std::min(kSlabRows, rows.size() - at));
    const hsize_t first = at;
    const hsize_t count = slab.size();
    const Handle memory{H5Screate_simple(1, &count, nullptr), H5Sclose};
    check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr));
    buffer.resize(slab.size() * size_of(column.type));
    check(
        H5Dread(dataset.get(), type.get(), memory.get(), space.get(), H5P_DEFAULT, buffer.data()));
    scatter(buffer, column, slab);
  }
}

std::vector<std::string> read_names(Id group, const char* name, std::uint64_t file_bytes) {
  const Handle dataset = open_dataset(group, name);
  const Handle type{H5Dget_type(dataset.get()), H5Tclose};
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0)
    fail("it holds no text of fixed length");
  const std::size_t size = H5Tget_size(type.get());
  if (size > kLongestNameBytes) fail("its names claim {} bytes each", size);
  const auto length = static_cast<std::size_t>(checked_length(dataset.get(), file_bytes));
  if (length > kMostNames) fail("it claims {} names", length);
  std::string packed(length * size, '\0');
  if (length > 0)
    check(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, packed.data()));
  std::vector<std::string> names(length);
  for (std::size_t i = 0; i < length; ++i) {
    names[i] = packed.substr(i * size, size);
    names[i].erase(names[i].find_last_not_of('\0') + 1);
  }
  return names;
}

/// Runs one step on one member; what it throws becomes a finding about that member.
template <typename Step>
void guarded(const char* group, const char* member, Findings& findings, Step&& step) {
  try {
    step();
  } catch (const Error& error) {
    findings.add("members that cannot be read",
                 fmt::format("{}/{} cannot be read ({}).", group, member, error.what()));
  }
}

/// The length that all columns have; none: they differ or cannot be read.
std::optional<hsize_t> common_length(Id group, const char* name, std::uint64_t file_bytes,
                                     Findings& findings) {
  std::optional<hsize_t> common;
  bool sound = true;
  for (const Column& column : timeline_columns()) {
    std::optional<hsize_t> length;
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

}  // namespace

void read_timeline(Id file, const char* name, std::uint64_t file_bytes, Timeline& timeline,
                   Findings& findings) {
  guarded(name, "", findings, [&] {
    const Handle group = open_member(file, name);
    if (H5Iget_type(group.get()) != H5I_GROUP) fail("it is no group");
    for (const NameColumn& table : name_columns()) {
      guarded(name, table.name, findings,
              [&] { timeline.*table.names = read_names(group.get(), table.name, file_bytes); });
    }
    const auto length = common_length(group.get(), name, file_bytes, findings);
    if (!length) return;
    timeline.rows.resize(static_cast<std::size_t>(*length));
    std::vector<std::byte> buffer;
    for (const Column& column : timeline_columns()) {
      guarded(name, column.name, findings,
              [&] { read_column(group.get(), column, timeline.rows, buffer); });
    }
  });
}

}  // namespace longhaul::hdf5
