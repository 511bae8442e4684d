#pragma once

#include <cstdint>
#include <vector>

#include "trace/hdf5/hdf5_handle.hpp"

namespace longhaul::hdf5 {

/// A short list of numbers: a dataset of its own.
void write_list(Id group, const char* name, const std::vector<std::int64_t>& values);
/// Throws Error where there is none. Takes no more memory than the file's bytes account for.
[[nodiscard]] std::vector<std::int64_t> read_list(Id group, const char* name,
                                                  std::uint64_t file_bytes);

}  // namespace longhaul::hdf5
