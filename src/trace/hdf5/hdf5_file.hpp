#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "trace/hdf5/hdf5_handle.hpp"

namespace longhaul::trace::hdf5 {

/// How a new file is written: piece by piece, or put together in memory and at once.
enum class Writing { piecewise, at_once };
/// Creates `file` with what `fill` puts into it, complete or not at all. Throws Error if it exists
/// or cannot be written.
void write_new_file(const std::filesystem::path& file, Writing writing,
                    const std::function<void(Id file)>& fill);
/// For reading. Throws Error on anything but a regular HDF5 file.
[[nodiscard]] Handle open_file(const std::filesystem::path& file);
[[nodiscard]] std::uint64_t size_of_file(const std::filesystem::path& file);

}  // namespace longhaul::trace::hdf5
