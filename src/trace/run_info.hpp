#pragma once

#include <cstdint>

#include "trace/findings.hpp"
#include "trace/hdf5_handle.hpp"
#include "trace/trace_file.hpp"

namespace longhaul::hdf5 {

/// The root attributes of an open file.
void write_run_info(Id file, const RunInfo& info);
[[nodiscard]] RunInfo read_run_info(Id file, std::uint64_t file_bytes, Findings& findings);

}  // namespace longhaul::hdf5
