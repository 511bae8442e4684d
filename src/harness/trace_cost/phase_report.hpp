#pragma once

#include <string>
#include <vector>

#include "harness/trace_cost/phase.hpp"
#include "harness/trace_cost/steps.hpp"

namespace longhaul::bench {

/// Costs of the phases and sizes of the files in `options.directory`, for people.
[[nodiscard]] std::string trace_table(const std::vector<PhaseCost>& phases,
                                      const TraceOptions& options);
/// The same, as JSON text.
[[nodiscard]] std::string trace_record(const std::vector<PhaseCost>& phases,
                                       const TraceOptions& options);

}  // namespace longhaul::bench
