#include "trace/hdf5/hdf5_file.hpp"

#include <algorithm>

#include <hdf5.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/hdf5/new_file.hpp"

namespace longhaul::trace::hdf5 {
namespace {

Handle access_properties() {
  Handle properties{H5Pcreate(H5P_FILE_ACCESS), H5Pclose};
  // The format of 1.10 guards its structure with checksums: damage is an error, not a crash.
  check(H5Pset_libver_bounds(properties.get(), H5F_LIBVER_V110, H5F_LIBVER_V110));
  // Files appear complete under their name, so no reader needs locks, which some clusters lack.
  check(H5Pset_file_locking(properties.get(), false, true));
  return properties;
}

/// Replaces the empty file that is there.
Handle create(const std::filesystem::path& file, Writing writing) {
  constexpr std::size_t kGrowBytes = std::size_t{1} << 16;
  const Handle access = access_properties();
  if (writing == Writing::at_once) check(H5Pset_fapl_core(access.get(), kGrowBytes, true));
  return {H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose};
}

constexpr std::size_t kLongestNameBytes = 1 << 16;
constexpr std::size_t kMostNames = 1 << 22;
/// A reader holds one chunk of each column.
constexpr hsize_t kLargestChunkBytes = hsize_t{1} << 24;
/// Deflate cannot pack more than 1032 bytes into one: what claims more was never written.
constexpr hsize_t kBestCompression = 1032;

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

}  // namespace

void write_new_file(const std::filesystem::path& file, Writing writing,
                    const std::function<void(Id file)>& fill) {
  const Silence silence;
  NewFile target{file};
  try {
    Handle handle = create(target.temporary(), writing);
    fill(handle.get());
    check(H5Fflush(handle.get(), H5F_SCOPE_LOCAL));
    handle.close();
  } catch (const Error& error) {
    throw Error{fmt::format("cannot write {} ({}). Check that there is space.", file.string(),
                            error.what()),
                ExitCode::run_failed};
  }
  target.publish();
}

Handle open_file(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) fail("there is no such file");
  if (!std::filesystem::is_regular_file(file)) fail("it is no file");
  const Handle access = access_properties();
  return {H5Fopen(file.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose};
}

std::uint64_t size_of_file(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) fail("its size is unknown ({})", error.message());
  return size;
}

bool has_member(Id group, const char* name) {
  return check(H5Lexists(group, name, H5P_DEFAULT)) != 0;
}

Handle open_member(Id group, const char* name) {
  H5L_info_t link;
  if (!has_member(group, name)) fail("it is missing");
  check(H5Lget_info(group, name, &link, H5P_DEFAULT));
  if (link.type != H5L_TYPE_HARD) fail("it is a link to somewhere else");
  return {H5Oopen(group, name, H5P_DEFAULT), H5Oclose};
}

Handle open_dataset(Id group, const char* name) {
  Handle object = open_member(group, name);
  if (H5Iget_type(object.get()) != H5I_DATASET) fail("it is no dataset");
  return object;
}

std::uint64_t checked_length(Id dataset, std::uint64_t file_bytes, Stored stored) {
  const Handle space{H5Dget_space(dataset), H5Sclose};
  if (H5Sget_simple_extent_type(space.get()) != H5S_SIMPLE ||
      H5Sget_simple_extent_ndims(space.get()) != 1)
    fail("it is no list (one dimension)");
  hsize_t length = 0;
  check(H5Sget_simple_extent_dims(space.get(), &length, nullptr));
  check_storage(dataset);
  const Handle type{H5Dget_type(dataset), H5Tclose};
  const hsize_t bytes = H5Dget_storage_size(dataset);
  const hsize_t most = std::min<hsize_t>(bytes, file_bytes) * kBestCompression;
  const bool too_long = stored == Stored::all_of_it && length > most / H5Tget_size(type.get());
  if (bytes > file_bytes || too_long)
    fail("it claims {} values, but only {} bytes of the file are theirs", length, bytes);
  return length;
}

std::size_t chunk_bytes(Id dataset) {
  const Handle properties{H5Dget_create_plist(dataset), H5Pclose};
  if (H5Pget_layout(properties.get()) != H5D_CHUNKED) return 0;
  hsize_t chunk = 0;
  check(H5Pget_chunk(properties.get(), 1, &chunk));
  const Handle type{H5Dget_type(dataset), H5Tclose};
  return to_size(chunk) * H5Tget_size(type.get());
}

std::vector<std::string> read_names(Id group, const char* name, std::uint64_t file_bytes) {
  const Handle dataset = open_dataset(group, name);
  const Handle type{H5Dget_type(dataset.get()), H5Tclose};
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0)
    fail("it holds no text of fixed length");
  const std::size_t size = H5Tget_size(type.get());
  if (size > kLongestNameBytes) fail("its names claim {} bytes each", size);
  const auto length = to_size(checked_length(dataset.get(), file_bytes));
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

}  // namespace longhaul::trace::hdf5
