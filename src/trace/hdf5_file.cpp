#include "trace/hdf5_file.hpp"

#include <hdf5.h>

#include "base/error.hpp"

namespace longhaul::hdf5 {
namespace {

Handle access_properties() {
  Handle properties{H5Pcreate(H5P_FILE_ACCESS), H5Pclose};
  // The format of 1.10 guards its structure with checksums: damage is an error, not a crash.
  check(H5Pset_libver_bounds(properties.get(), H5F_LIBVER_V110, H5F_LIBVER_V110));
  // Files appear complete under their name, so nobody needs locks, which some clusters lack.
  check(H5Pset_file_locking(properties.get(), false, true));
  return properties;
}

}  // namespace

Handle create_file(const std::filesystem::path& file) {
  const Handle access = access_properties();
  return {H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose};
}

Handle create_small_file(const std::filesystem::path& file) {
  constexpr std::size_t kGrowBytes = std::size_t{1} << 16;
  const Handle access = access_properties();
  check(H5Pset_fapl_core(access.get(), kGrowBytes, true));
  return {H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose};
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

void flush(Id file) { check(H5Fflush(file, H5F_SCOPE_LOCAL)); }

}  // namespace longhaul::hdf5
