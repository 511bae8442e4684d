#pragma once

#include <cstdint>

#include "trace/file/trace_file.hpp"
#include "trace/hdf5/hdf5_handle.hpp"
#include "trace/timeline/diagnostics.hpp"

namespace longhaul::hdf5 {

/// The root attributes of an open file.
void write_run_info(Id file, const RunInfo& info);
[[nodiscard]] RunInfo read_run_info(Id file, std::uint64_t file_bytes, Diagnostics& findings);

}  // namespace longhaul::hdf5
