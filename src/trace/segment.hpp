#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "trace/trace_file.hpp"

namespace longhaul {

/// "segment.<schedule>.<iteration>.<rank>.h5".
[[nodiscard]] std::string segment_name(const SegmentKey& key);
/// The key that a file's name states; nothing: it is no segment.
[[nodiscard]] std::optional<SegmentKey> parse_segment_name(const std::string& name);

/// Segments of a directory: of each iteration, files by rank.
using SegmentFiles = std::map<IterationKey, std::map<int, std::filesystem::path>>;
[[nodiscard]] SegmentFiles find_segments(const std::filesystem::path& directory);

/// Rows of one segment, checked as far as merging relies on them; nothing: it is not what its name
/// says, or damaged.
[[nodiscard]] std::optional<Timeline> read_segment(const std::filesystem::path& file,
                                                   const SegmentKey& key);

}  // namespace longhaul
