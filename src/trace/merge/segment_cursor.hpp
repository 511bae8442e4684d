#pragma once

#include <optional>
#include <span>

#include "trace/file/segment.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"

namespace longhaul::trace {

/// Thrown within a merge: a segment is not what it says, and its iteration is left out.
struct DamagedSegment {};

/// The rows of one segment in order of op, piece by piece. Opens the file when its first rows are
/// needed. Every call may throw DamagedSegment.
class SegmentCursor {
public:
  explicit SegmentCursor(SegmentFile file);

  [[nodiscard]] const SegmentIndex& index() const { return index_; }
  /// How many rows are read at once, and whether the file stays open in between.
  struct Reading {
    std::size_t rows = hdf5::kSegmentChunkRows;
    bool stays_open = true;
  };
  [[nodiscard]] bool is_begun() const { return read_ > 0; }
  /// Gets the first rows; there are some.
  void begin(const Reading& reading);
  /// Tables of names of a segment that is begun, and the schedule of all its rows.
  [[nodiscard]] const Timeline& names() const { return names_; }
  [[nodiscard]] std::int32_t schedule() const { return schedule_; }

  [[nodiscard]] bool is_done() const { return taken_ == rows_; }
  /// Op of the next row; that of the last one that was taken, until fill() is called.
  [[nodiscard]] std::int64_t next_op() const { return next_op_; }
  /// Reads on if there is no row in memory.
  void fill();
  /// Rows in memory whose op is below `limit`, and at least one: until fill() or release().
  [[nodiscard]] std::span<TimelineRow> take_below(std::int64_t limit);
  /// Gives the memory back.
  void release() { piece_ = {}; }

private:
  void open();
  void close();
  void check_piece();
  void check_ends() const;

  SegmentFile file_;
  SegmentIndex index_;
  Reading reading_;
  std::optional<hdf5::Handle> handle_;
  std::optional<hdf5::TimelineReader> reader_;
  Timeline names_;
  std::vector<TimelineRow> piece_;
  std::size_t at_ = 0;                             ///< in `piece_`
  std::uint64_t rows_ = 0, taken_ = 0, read_ = 0;  ///< in all, handed over, in memory so far
  std::int64_t next_op_ = 0;
  std::int64_t last_op_read_ = INT64_MIN;
  std::int32_t schedule_ = -1;
  std::vector<std::int64_t> first_starts_;  ///< as read, by position in the index
};

}  // namespace longhaul::trace
