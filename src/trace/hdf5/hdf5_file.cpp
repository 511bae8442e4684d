#include "trace/hdf5/hdf5_file.hpp"

#include <hdf5.h>

#include "base/error.hpp"
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

}  // namespace longhaul::trace::hdf5
