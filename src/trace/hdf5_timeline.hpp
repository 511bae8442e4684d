#pragma once

#include <cstdint>

#include "trace/findings.hpp"
#include "trace/hdf5_handle.hpp"
#include "trace/timeline.hpp"

namespace longhaul::hdf5 {

/// Large traces are compressed; small segments, written in the middle of a run, are not.
enum class Storage { compressed, plain };

/// Adds `group` to an open file: one dataset per column, one per table of names (docs/trace.md).
void write_timeline(Id file, const char* group, const Timeline& timeline, Storage storage);

/// Reads `group` back. What does not fit the format goes to `findings`, and `timeline` is then
/// incomplete; what the columns say is not judged here. No more memory than `file_bytes` can
/// account for is ever taken.
void read_timeline(Id file, const char* group, std::uint64_t file_bytes, Timeline& timeline,
                   Findings& findings);

}  // namespace longhaul::hdf5
