#pragma once

#include <cstdint>
#include <filesystem>

#include "trace/hdf5_handle.hpp"

namespace longhaul::hdf5 {

/// Replaces the (empty) file `file`.
[[nodiscard]] Handle create_file(const std::filesystem::path& file);
/// As create_file(), but put together in memory and written at once when it is flushed or closed.
[[nodiscard]] Handle create_small_file(const std::filesystem::path& file);
/// For reading. Throws Error on anything but a regular HDF5 file.
[[nodiscard]] Handle open_file(const std::filesystem::path& file);
[[nodiscard]] std::uint64_t size_of_file(const std::filesystem::path& file);
/// Forces everything to disk, so that closing cannot fail any more for lack of space.
void flush(Id file);

}  // namespace longhaul::hdf5
