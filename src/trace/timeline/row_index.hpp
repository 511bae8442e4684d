#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

inline constexpr std::size_t kNoRow = static_cast<std::size_t>(-1);

/// Finds rows of one (schedule, iteration), ordered by op id, by their op.
class RowIndex {
public:
  explicit RowIndex(std::span<const TimelineRow> rows) : rows_{rows} {}
  /// Position of the row of `op`; kNoRow if there is none.
  [[nodiscard]] std::size_t find(std::int64_t op) const;

private:
  std::span<const TimelineRow> rows_;
};

/// For every send the position of its receive and the other way round; kNoRow for other rows and
/// for messages that lack a side. A message is named by its ranks, chunk, microbatch, part, leg,
/// owner and piece; where two share the name (an activation and a gradient between the same two
/// ranks) the order of op ids decides, since both lanes keep the order of sending.
[[nodiscard]] std::vector<std::size_t> match_messages(std::span<const TimelineRow> rows);

}  // namespace longhaul::trace
