#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/hdf5/hdf5_handle.hpp"
#include "trace/timeline/columns.hpp"
#include "trace/timeline/diagnostics.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::trace::hdf5 {

/// Large traces are compressed; small segments, written in the middle of a run, are not.
enum class Storage { compressed, plain };

/// What a group has of a column, or a table of names, that may be empty and is: a dataset of which
/// nothing is stored, as in a trace, or no dataset, as in a segment: making and opening one takes
/// 20 us, in the middle of a run.
enum class EmptyColumns { are_there, are_left_out };

/// Rows of a chunk of a compressed group: what is read or written of it at once.
inline constexpr std::size_t kTraceChunkRows = std::size_t{1} << 16;
/// The same of a segment: merging holds one chunk of each that it reads.
inline constexpr std::size_t kSegmentChunkRows = std::size_t{1} << 14;

/// Adds `group` to an open file: one dataset per column, one per table of names (docs/trace.md). Of
/// a column that may be empty nothing is stored where no row says anything in it.
void write_timeline(Id file, const char* group, const Timeline& timeline, Storage storage,
                    std::size_t chunk_rows = kTraceChunkRows,
                    EmptyColumns empty = EmptyColumns::are_there);

/// Adds a compressed group whose rows come little by little; holds no more than a chunk of them.
class TimelineWriter {
public:
  TimelineWriter(Id file, const char* group);

  void append(std::span<const TimelineRow> rows);
  [[nodiscard]] std::uint64_t rows() const { return written_ + pending_.size(); }
  /// Rows appended from here on may be taken back, until the next call.
  void keep_rows();
  /// Takes back what was appended since keep_rows().
  void drop_rows();
  /// Call once, after the last row.
  void finish(const Timeline& names);

private:
  void write_pending();
  void set_extent(std::uint64_t rows);

  Handle group_;
  std::vector<Handle> columns_;
  std::vector<TimelineRow> pending_;
  std::vector<std::byte> buffer_;
  std::uint64_t written_ = 0;
  std::uint64_t kept_ = 0;            ///< rows() at keep_rows()
  std::vector<TimelineRow> stashed_;  ///< those of them that were pending, once they are written
};

/// A group that is read piece by piece, in any order of pieces. What its columns say is not judged
/// here. No more memory than the bytes of the file can account for is ever taken.
class TimelineReader {
public:
  /// What a group may lack.
  struct Format {
    std::int64_t schema;  ///< version of the file
    EmptyColumns empty = EmptyColumns::are_there;
  };
  /// Opens the group. What does not fit the format goes to `findings`; there are no rows then.
  TimelineReader(Id file, const char* group, const Format& format, std::uint64_t file_bytes,
                 Diagnostics& findings);

  /// The tables of names, and which rows are left out because this program does not know their
  /// kind: the others are as if these were not there. No rows.
  [[nodiscard]] const Timeline& names() const { return names_; }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  /// Throws Error where the file is damaged: see find_damage().
  void read(std::uint64_t first, std::span<TimelineRow> rows) const;
  /// The same for what tells iterations apart, `schedule` and `iteration`; other members stay.
  void read_keys(std::uint64_t first, std::span<TimelineRow> rows) const;
  /// Reads every column to its end; says which cannot be read, and why.
  void find_damage(Diagnostics& findings) const;

private:
  struct OpenColumn {
    Handle dataset, type, space;
  };
  void open_column(Id group, const Column& column, bool lacking);
  void find_new_kinds();
  void read_column(std::size_t column, std::uint64_t first, std::span<TimelineRow> rows) const;
  /// Rows by their place in the file: those of unknown kinds too.
  void read_stored(std::uint64_t first, std::span<TimelineRow> rows) const;
  [[nodiscard]] std::vector<TimelineRow> known_rows_of(std::size_t block) const;

  const char* group_name_;
  Timeline names_;
  /// In the order of timeline_columns(); nothing: all rows have what `unstored_` has. Empty:
  /// unsound.
  std::vector<std::optional<OpenColumn>> columns_;
  ColumnSet not_stored_ = 0;
  TimelineRow unstored_;  ///< what columns hold where the file holds nothing
  std::uint64_t stored_rows_ = 0, rows_ = 0;
  /// Known rows before each kTraceChunkRows rows of the file; empty: all rows are known.
  std::vector<std::uint64_t> known_before_;
  mutable std::vector<std::byte> buffer_;
};

/// Reads the whole group; what cannot be read goes to `findings`.
void read_all(const TimelineReader& reader, Timeline& timeline, Diagnostics& findings);

}  // namespace longhaul::trace::hdf5
