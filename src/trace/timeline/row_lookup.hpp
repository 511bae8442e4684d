#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

inline constexpr std::size_t kNoRow = static_cast<std::size_t>(-1);

/// Finds rows of one (schedule, iteration), ordered by op id, by their op. `Rows`: see
/// IterationViewOf.
template <typename Rows>
class RowIndexOf {
public:
  explicit RowIndexOf(Rows rows) : rows_{rows} {}

  /// Position of the row of `op`; kNoRow if there is none.
  [[nodiscard]] std::size_t find(std::int64_t op) const {
    if (rows_.size() == 0 || op < rows_[0].op || op > rows_[rows_.size() - 1].op) return kNoRow;
    // The rows of all ranks have consecutive ids: the guess is right except in partial timelines.
    const auto guess = at(op - rows_[0].op);
    if (guess < rows_.size() && rows_[guess].op == op) return guess;
    std::size_t first = 0;
    for (std::size_t count = rows_.size(); count > 0;) {
      const std::size_t half = count / 2;
      const bool before = rows_[first + half].op < op;
      first += before ? half + 1 : 0;
      count = before ? count - half - 1 : half;
    }
    return first < rows_.size() && rows_[first].op == op ? first : kNoRow;
  }

private:
  Rows rows_;
};
using RowIndex = RowIndexOf<std::span<const TimelineRow>>;

/// Some rows, blocks or receives, by rank, chunk and microbatch. They lie in buckets by a hash of
/// the three that keeps neighbouring microbatches together; O(rows) to build but for rows of one
/// name, which are sorted.
template <typename Rows>
class RowLookupOf {
public:
  /// `positions`: of the rows that are to be found.
  RowLookupOf(Rows rows, std::span<const std::size_t> positions);

  /// Positions of the rows of that name, in order of their end.
  [[nodiscard]] std::span<const std::uint32_t> find(std::int32_t rank, std::int32_t chunk,
                                                    std::int32_t microbatch) const;

private:
  using Name = std::tuple<std::int32_t, std::int32_t, std::int32_t>;

  static Name name_of(const TimelineRow& row) { return {row.rank, row.chunk, row.microbatch}; }
  [[nodiscard]] std::uint32_t bucket_of(const Name& name) const {
    constexpr std::uint32_t kRankFactor = 0x9E3779B1,
                            kChunkFactor = 0x85EBCA6B;  // odd: all bits are used
    const auto [rank, chunk, microbatch] = name;
    return (static_cast<std::uint32_t>(rank) * kRankFactor +
            static_cast<std::uint32_t>(chunk) * kChunkFactor +
            static_cast<std::uint32_t>(microbatch)) &
           mask_;
  }
  void sort_bucket(std::uint32_t bucket);

  Rows rows_;
  std::uint32_t mask_ = 0;
  std::vector<std::uint32_t>
      begin_;  ///< of each bucket in order_; one more than buckets at the end
  std::vector<std::uint32_t> order_;
};

template <typename Rows>
RowLookupOf<Rows>::RowLookupOf(Rows rows, std::span<const std::size_t> positions) : rows_{rows} {
  LONGHAUL_ASSERT(rows.size() < std::numeric_limits<std::uint32_t>::max(), "{} rows", rows.size());
  const auto buckets = std::bit_ceil(std::max(static_cast<std::uint32_t>(positions.size()), 1U));
  mask_ = buckets - 1;
  begin_.assign(std::size_t{buckets} + 1, 0);
  std::vector<std::uint32_t> bucket(positions.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    bucket[i] = bucket_of(name_of(rows_[positions[i]]));
    ++begin_[bucket[i]];
  }
  // The ends of all buckets; as they are filled, last one first, each becomes the bucket's begin.
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  order_.resize(positions.size());
  for (std::size_t i = positions.size(); i-- > 0;)
    order_[--begin_[bucket[i]]] = static_cast<std::uint32_t>(positions[i]);
  for (std::uint32_t b = 0; b < buckets; ++b) sort_bucket(b);
}

template <typename Rows>
void RowLookupOf<Rows>::sort_bucket(std::uint32_t bucket) {
  if (begin_[bucket + 1] - begin_[bucket] < 2) return;
  const auto first = order_.begin() + begin_[bucket];
  const auto last = order_.begin() + begin_[bucket + 1];
  const auto comes_before = [this](std::uint32_t a, std::uint32_t b) {
    const TimelineRow& x = rows_[a];
    const TimelineRow& y = rows_[b];
    return std::tuple{name_of(x), x.end_ns, a} < std::tuple{name_of(y), y.end_ns, b};
  };
  if (!std::is_sorted(first, last, comes_before)) std::sort(first, last, comes_before);
}

template <typename Rows>
std::span<const std::uint32_t> RowLookupOf<Rows>::find(std::int32_t rank, std::int32_t chunk,
                                                       std::int32_t microbatch) const {
  const Name wanted{rank, chunk, microbatch};
  const std::uint32_t bucket = bucket_of(wanted);
  auto first = order_.begin() + begin_[bucket];
  const auto end = order_.begin() + begin_[bucket + 1];
  first =
      std::partition_point(first, end, [&](std::uint32_t i) { return name_of(rows_[i]) < wanted; });
  const auto last = std::partition_point(
      first, end, [&](std::uint32_t i) { return name_of(rows_[i]) == wanted; });
  return {first, last};
}

}  // namespace longhaul::trace
