#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "harness/environment/shared_options.hpp"
#include "harness/trace_cost/synthetic_run.hpp"

namespace longhaul::harness {

/// Options of bench_trace.
struct TraceOptions : SharedOptions {
  SyntheticShape shape{.ranks = 1024, .stages = 0, .iterations = 10, .events = 100'000, .seed = 1};
  int ranks_per_host = 8;
  std::string memory_limit;
  std::filesystem::path directory;
  bool in_memory = false, keep = false;
};

/// Writes the run host by host; how many rows it has.
[[nodiscard]] std::int64_t write_segments(const TraceOptions& options, const SyntheticRun& run);
/// Merges the segments into trace.h5; how many rows it got.
[[nodiscard]] std::int64_t merge(const TraceOptions& options);
/// Throws Error (the answer is no) where trace.h5 is wrong.
void validate(const TraceOptions& options);

}  // namespace longhaul::harness
