#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trace/file/trace_file.hpp"

namespace longhaul::trace {

/// A selection from a trace; nothing named: all of it.
struct TracePart {
  std::optional<std::string> schedule{};
  std::optional<int> iteration{};  ///< of measured rows: a prediction has but one
};

/// A trace's description of itself, without a row read. Throws Error on a file that is no trace.
struct TraceOverview {
  std::string creator;
  std::uint64_t measured_rows = 0, predicted_rows = 0;
};
[[nodiscard]] TraceOverview overview_of(const std::filesystem::path& file);

/// read_trace() of a part: only its rows are read, and held to the rules of a trace. Throws Error
/// if there are more than `most_rows` of them.
[[nodiscard]] Trace read_trace_part(const std::filesystem::path& file, const TracePart& part,
                                    std::uint64_t most_rows);

}  // namespace longhaul::trace
