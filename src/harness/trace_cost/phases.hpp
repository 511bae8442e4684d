#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
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

/// Cost of a part of a benchmark.
struct PhaseCost {
  std::string name;
  std::int64_t rows = 0;
  double seconds = 0;
  double processor_seconds = 0;
  Bytes peak_memory{};  ///< resident, of the process that did it
};

/// Does `work`, which returns how many rows it handled, in a process of its own, so that its memory
/// is its own too. With `memory_limit` all that it maps, program and libraries included, stays
/// below. Throws Error where the work does, or runs out of memory.
[[nodiscard]] PhaseCost run_phase(const std::string& name, std::optional<Bytes> memory_limit,
                                  const std::function<std::int64_t()>& work);

/// Costs of the phases and sizes of the files in `options.directory`, for people.
[[nodiscard]] std::string trace_table(const std::vector<PhaseCost>& phases,
                                      const TraceOptions& options);
/// The same, as JSON text.
[[nodiscard]] std::string trace_record(const std::vector<PhaseCost>& phases,
                                       const TraceOptions& options);

}  // namespace longhaul::harness
