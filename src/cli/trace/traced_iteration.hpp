#pragma once

#include <optional>
#include <span>
#include <string>

#include "collective/iteration/iteration_times.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::cli {

/// An iteration under an overlap that was traced, and what its ops are.
struct TracedIteration {
  collective::IterationPlan plan;
  collective::LoweredIteration lowered;
};

/// What ran under that name, made (and searched) again from the trace's scenario and limits. Throws
/// Error where the rows of an iteration in `timeline` are not those of the ops that this gives.
[[nodiscard]] TracedIteration iteration_of_trace(const trace::Trace& trace,
                                                 const std::string& source, const std::string& name,
                                                 const Timeline& timeline,
                                                 std::span<const TimelineRow> rows);

/// Times of all ops; nothing where the rows, which refer to the names of `timeline`, are not those
/// of the plan.
[[nodiscard]] std::optional<OpTimes> times_of(const Timeline& timeline,
                                              std::span<const TimelineRow> rows, const Plan& plan);

}  // namespace longhaul::cli
