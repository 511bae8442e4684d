#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "harness/trace_cost/steps.hpp"

namespace longhaul::harness {

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
