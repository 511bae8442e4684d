#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "trace/hdf5_handle.hpp"

namespace longhaul::hdf5 {

/// Replaces the (empty) file `file`.
[[nodiscard]] Handle create_file(const std::filesystem::path& file);
/// A file that lives in memory until file_image() takes its bytes: for one write to disk.
[[nodiscard]] Handle create_image();
[[nodiscard]] std::vector<std::byte> file_image(Id file);
/// For reading. Throws Error on anything but a regular HDF5 file.
[[nodiscard]] Handle open_file(const std::filesystem::path& file);
[[nodiscard]] std::uint64_t size_of_file(const std::filesystem::path& file);
/// Forces everything to disk, so that closing cannot fail any more for lack of space.
void flush(Id file);

}  // namespace longhaul::hdf5
