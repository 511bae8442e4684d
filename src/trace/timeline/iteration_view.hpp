#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/timeline/row_index.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

/// Rows of one iteration, by rank and by message. Holds positions in `rows`, which it refers to.
struct IterationView {
  explicit IterationView(std::span<const TimelineRow> iteration_rows);

  std::span<const TimelineRow> rows;
  std::vector<std::vector<std::size_t>> blocks;  ///< of each rank, in order of start
  std::vector<std::size_t> other_side;           ///< match_messages(rows)
  std::int64_t begin_ns = 0;                     ///< first op on any rank
  std::int64_t end_ns = 0;                       ///< last block or collective on any rank

  [[nodiscard]] std::int64_t makespan_ns() const { return end_ns - begin_ns; }
  /// Time within the iteration during which the rank runs a block.
  [[nodiscard]] std::int64_t busy_ns(std::size_t rank) const;
  /// The time within the iteration nearest to `time_ns`.
  [[nodiscard]] std::int64_t clamped(std::int64_t time_ns) const;
};

/// Blocks, or receives, by rank, chunk and microbatch.
class RowLookup {
public:
  enum class Of : std::uint8_t { blocks, receives };
  RowLookup(std::span<const TimelineRow> rows, Of what);
  /// Positions of the rows of that name, in order of their end.
  [[nodiscard]] std::span<const std::size_t> find(std::int32_t rank, std::int32_t chunk,
                                                  std::int32_t microbatch) const;

private:
  std::span<const TimelineRow> rows_;
  std::vector<std::size_t> order_;
};

}  // namespace longhaul::trace
