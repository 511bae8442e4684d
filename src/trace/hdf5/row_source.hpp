#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

/// Rows of a timeline, in memory or in a file, read piece by piece and as often as needed.
class RowSource {
public:
  RowSource() = default;
  virtual ~RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;

  /// Its tables of names; rows, if any, are none of the caller's business.
  [[nodiscard]] virtual const Timeline& names() const = 0;
  [[nodiscard]] virtual std::uint64_t rows() const = 0;
  /// Rows from `first` on, at least one; until the next call. Throws Error on a damaged file.
  [[nodiscard]] virtual std::span<const TimelineRow> from(std::uint64_t first) = 0;
};

/// Calls `visit(row)` for rows [first, first + count).
template <typename Visit>
void for_rows(RowSource& source, std::uint64_t first, std::uint64_t count, Visit&& visit) {
  const std::uint64_t end = first + count;
  while (first < end) {
    const auto rows = source.from(first);
    for (const TimelineRow& row : rows.first(std::min<std::uint64_t>(rows.size(), end - first)))
      visit(row);
    first += rows.size();
  }
}

/// Refers to the timeline.
class RowsInMemory : public RowSource {
public:
  explicit RowsInMemory(const Timeline& timeline) : timeline_{timeline} {}
  [[nodiscard]] const Timeline& names() const override { return timeline_; }
  [[nodiscard]] std::uint64_t rows() const override { return timeline_.rows.size(); }
  [[nodiscard]] std::span<const TimelineRow> from(std::uint64_t first) override {
    return std::span{timeline_.rows}.subspan(to_size(first));
  }

private:
  const Timeline& timeline_;
};

/// Refers to the reader; holds one chunk of its rows.
class RowsInFile : public RowSource {
public:
  explicit RowsInFile(const hdf5::TimelineReader& reader) : reader_{reader} {}
  [[nodiscard]] const Timeline& names() const override { return reader_.names(); }
  [[nodiscard]] std::uint64_t rows() const override { return reader_.rows(); }
  [[nodiscard]] std::span<const TimelineRow> from(std::uint64_t first) override {
    if (first < first_ || first >= first_ + chunk_.size()) load(first);
    return std::span{chunk_}.subspan(to_size(first - first_));
  }

private:
  void load(std::uint64_t row) {
    first_ = row - row % hdf5::kTraceChunkRows;
    chunk_.resize(std::min<std::uint64_t>(reader_.rows() - first_, hdf5::kTraceChunkRows));
    reader_.read(first_, chunk_);
  }

  const hdf5::TimelineReader& reader_;
  std::vector<TimelineRow> chunk_;
  std::uint64_t first_ = 0;
};

}  // namespace longhaul::trace
