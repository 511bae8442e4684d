#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

inline constexpr std::int64_t kNever = INT64_MAX;

/// For each block of each rank: since when a forward after it in the row had its input, but would
/// not have fit into the activation budget in the gap before the block; kNever if there is none.
[[nodiscard]] std::vector<std::vector<std::int64_t>> blocked_forwards_since(
    const IterationView& view, std::int64_t activation_budget_bytes);

/// Activation memory of a rank in the gap before each of its blocks, and after the last.
[[nodiscard]] std::vector<std::int64_t> memory_in_gaps(const IterationView& view, std::size_t rank);
/// Sum that stops at the limits of its type.
[[nodiscard]] std::int64_t saturating_sum(std::int64_t a, std::int64_t b);

}  // namespace longhaul::trace
