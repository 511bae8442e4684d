#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "trace/file/trace_file.hpp"
#include "trace/merge/segment_cursor.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::trace {

/// Where merged rows go, an iteration at a time.
class MergeTarget {
public:
  MergeTarget() = default;
  virtual ~MergeTarget() = default;
  MergeTarget(const MergeTarget&) = delete;
  MergeTarget& operator=(const MergeTarget&) = delete;

  virtual void append(std::span<const TimelineRow> rows) = 0;
  /// An iteration begins.
  virtual void keep_rows() = 0;
  /// A segment of it is damaged: its rows so far are taken back.
  virtual void drop_rows() = 0;
};

/// Merges segments, iteration by iteration, in order of op. Tables of names begin with those of the
/// prediction, so that the same name has the same index in both groups.
class Merger {
public:
  /// `clocks`: index is a rank; empty: none drifts.
  Merger(const Timeline& predicted_names, std::span<const RankClock> clocks, MergeTarget& target);

  /// Adds an iteration of `ranks` ranks; leaves it out if a segment of it is damaged.
  void add(const IterationKey& key, const std::map<int, SegmentFile>& files, std::int64_t ranks);
  /// The tables so far; no rows.
  [[nodiscard]] const Timeline& names() const { return names_; }
  /// Iterations so far of which a segment is damaged.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

private:
  /// A segment, and what its rows' names are in the merged tables.
  struct Source {
    SegmentCursor cursor;
    std::vector<std::vector<std::int32_t>> translations{};  ///< in the order of name_columns()
    std::int32_t schedule = 0;
  };

  void merge(const IterationKey& key, const std::map<int, SegmentFile>& files, std::int64_t ranks);
  void merge(const IterationKey& key, std::vector<Source>& sources, std::int64_t origin_ns);
  void begin(const IterationKey& key, Source& source, const SegmentCursor::Reading& reading);
  void move(std::span<TimelineRow> rows, const Source& source, std::int64_t origin_ns) const;
  [[nodiscard]] std::int64_t moved(std::int64_t rank, std::int64_t stamp_ns) const;
  [[nodiscard]] std::int32_t schedule_of(int position, const std::string& name);
  [[nodiscard]] std::int32_t place(int position, const std::string& name);

  std::span<const RankClock> clocks_;
  MergeTarget& target_;
  Timeline names_;
  std::size_t planned_schedules_;
  std::uint64_t left_out_ = 0;
  std::vector<NameTable> tables_;  ///< in the order of name_columns()
  std::map<int, std::int32_t> schedule_of_position_;
};

}  // namespace longhaul::trace
