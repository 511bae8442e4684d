#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/file/trace_file.hpp"
#include "trace/hdf5/hdf5_handle.hpp"

namespace longhaul::trace {

/// The facts in the name of a segment: an iteration, and the ranks whose rows of it are there.
/// Ranks of one host need not follow one another.
struct SegmentName {
  IterationKey key;
  int lowest_rank = 0;
  int ranks = 1;
};
/// "segment.<schedule>.<iteration>.<rank>.h5", or "...<lowest rank>+<ranks>.h5".
[[nodiscard]] std::string to_string(const SegmentName& name);
/// The name of a file; nothing: it is no segment.
[[nodiscard]] std::optional<SegmentName> parse_segment_name(const std::string& text);

struct SegmentFile {
  SegmentName name;
  std::filesystem::path path;
};
/// Segments of a directory: of each iteration, by their lowest rank.
using SegmentFiles = std::map<IterationKey, std::map<int, SegmentFile>>;
[[nodiscard]] SegmentFiles find_segments(const std::filesystem::path& directory);

/// Facts of a segment that merging needs before it reads rows.
struct SegmentIndex {
  std::vector<std::int64_t> ranks;           ///< ascending
  std::vector<std::int64_t> first_start_ns;  ///< of each, of what ran; kNoStart: nothing did
  std::int64_t first_op = 0, last_op = -1;   ///< no rows: last below first
  static constexpr std::int64_t kNoStart = INT64_MAX;
};
/// `rows` are of these ranks and ordered by op.
[[nodiscard]] SegmentIndex index_of(std::span<const TimelineRow> rows, std::vector<int> ranks);
void write_index(hdf5::Id file, const SegmentIndex& index);
/// Segments of earlier versions have none.
[[nodiscard]] bool has_index(hdf5::Id file);
[[nodiscard]] SegmentIndex read_index(hdf5::Id file, std::uint64_t file_bytes);

/// Does merging find its way with this row of a segment? `timeline` has the tables of names,
/// `schedule` is that of the segment's other rows.
[[nodiscard]] bool is_sound(const Timeline& timeline, const TimelineRow& row, std::int32_t schedule,
                            int iteration);

}  // namespace longhaul::trace
