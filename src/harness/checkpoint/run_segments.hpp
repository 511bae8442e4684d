#pragma once

#include <filesystem>
#include <vector>

namespace longhaul::harness {

/// Moves what is no part of the finished iterations to DIR/unfinished-N: temporary files, reports
/// of watchdogs, a trace without its record, trace, record and page of a part that was stopped, and
/// segments that are not gone on from. `finished`: how many iterations of each schedule are kept,
/// from 0 on.
void set_unfinished_aside(const std::filesystem::path& directory, const std::vector<int>& finished);

/// Removes what only merging and going on need: run.h5 and the segments.
void remove_segments(const std::filesystem::path& directory);

/// How many iterations of each of so many schedules all ranks have finished, from 0 on without a
/// gap. Goes by the files' names alone.
[[nodiscard]] std::vector<int> count_finished(const std::filesystem::path& directory, int ranks,
                                              std::size_t schedules);

}  // namespace longhaul::harness
