#include "trace/file/segment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::trace {
namespace {

constexpr std::string_view kPrefix = "segment.";
constexpr std::string_view kSegmentSuffix = ".h5";
/// Merging subtracts times: two of these still differ by less than 2^63.
constexpr std::int64_t kLargestTimestamp = std::int64_t{1} << 62;
/// Below that, what compressing saves is not worth its time in the middle of a run.
constexpr std::size_t kLeastCompressed = 4096;

bool is_timestamp(std::int64_t time_ns) {
  return -kLargestTimestamp < time_ns && time_ns < kLargestTimestamp;
}

Timeline ordered_by_op(const Timeline& timeline) {
  Timeline ordered = timeline;
  std::ranges::stable_sort(ordered.rows, {}, &TimelineRow::op);
  return ordered;
}

}  // namespace

std::string to_string(const SegmentName& name) {
  const std::string more = name.ranks == 1 ? "" : fmt::format("+{}", name.ranks);
  return fmt::format("{}{}.{}.{}{}{}", kPrefix, name.key.schedule, name.key.iteration,
                     name.lowest_rank, more, kSegmentSuffix);
}

std::optional<SegmentName> parse_segment_name(const std::string& text) {
  if (!text.starts_with(kPrefix) || !text.ends_with(kSegmentSuffix) ||
      text.size() < kPrefix.size() + kSegmentSuffix.size())
    return std::nullopt;
  const char* at = text.data() + kPrefix.size();
  const char* const end = text.data() + text.size() - kSegmentSuffix.size();
  std::array<int, 4> ids{0, 0, 0, 1};
  std::size_t count = 0;
  for (; count < ids.size(); ++count) {
    const auto [stop, status] = std::from_chars(at, end, ids[count]);
    if (status != std::errc{} || ids[count] < 0) return std::nullopt;
    if (stop == end) break;
    at = stop + 1;
  }
  const SegmentName name{{ids[0], ids[1]}, ids[2], ids[3]};
  // "segment.01.2.3.h5" is not ours, nor is what has other signs in between.
  if (count < 2 || name.ranks < 1 || to_string(name) != text) return std::nullopt;
  return name;
}

SegmentFiles find_segments(const std::filesystem::path& directory) {
  std::error_code error;
  SegmentFiles files;
  std::filesystem::directory_iterator entries{directory, error};
  for (; !error && entries != std::filesystem::directory_iterator{}; entries.increment(error)) {
    if (const auto name = parse_segment_name(entries->path().filename().string()))
      files[name->key][name->lowest_rank] = {*name, entries->path()};
  }
  if (error)
    fail("cannot list {} ({}). Name the directory of a run.", directory.string(), error.message());
  return files;
}

SegmentIndex index_of(std::span<const TimelineRow> rows, std::vector<int> ranks) {
  std::ranges::sort(ranks);
  SegmentIndex index;
  index.ranks.assign(ranks.begin(), ranks.end());
  index.first_start_ns.assign(ranks.size(), SegmentIndex::kNoStart);
  if (rows.empty()) return index;
  index.first_op = rows.front().op;
  index.last_op = rows.back().op;
  for (const TimelineRow& row : rows) {
    const auto found = std::ranges::lower_bound(index.ranks, row.rank);
    LONGHAUL_ASSERT(found != index.ranks.end() && *found == row.rank, "a row of rank {}", row.rank);
    if (!has_run(row)) continue;
    auto& first = index.first_start_ns[at(found - index.ranks.begin())];
    first = std::min(first, row.start_ns);
  }
  return index;
}

void write_index(hdf5::Id file, const SegmentIndex& index) {
  hdf5::write_list(file, "ranks", index.ranks);
  hdf5::write_list(file, "first_start_ns", index.first_start_ns);
  hdf5::write_attribute(file, "first_op", index.first_op);
  hdf5::write_attribute(file, "last_op", index.last_op);
}

bool has_index(hdf5::Id file) { return hdf5::has_member(file, "ranks"); }

SegmentIndex read_index(hdf5::Id file, std::uint64_t file_bytes) {
  SegmentIndex index;
  index.ranks = hdf5::read_list(file, "ranks", file_bytes);
  index.first_start_ns = hdf5::read_list(file, "first_start_ns", file_bytes);
  index.first_op = hdf5::read_int_attribute(file, "first_op");
  index.last_op = hdf5::read_int_attribute(file, "last_op");
  const bool ascend =
      std::ranges::adjacent_find(index.ranks, std::greater_equal{}) == index.ranks.end();
  const bool starts = std::ranges::all_of(index.first_start_ns, [](std::int64_t start) {
    return start == SegmentIndex::kNoStart || is_timestamp(start);
  });
  if (!ascend || !starts || index.first_start_ns.size() != index.ranks.size())
    fail("its index cannot be");
  return index;
}

bool is_sound(const Timeline& timeline, const TimelineRow& row, std::int32_t schedule,
              int iteration) {
  const bool indices_fit = std::ranges::all_of(name_columns(), [&](const NameColumn& table) {
    const std::int32_t index = row.*table.index;
    return index >= table.lowest &&
           (index < 0 || std::cmp_less(index, (timeline.*table.names).size()));
  });
  return indices_fit && row.iteration == iteration && row.schedule == schedule &&
         is_timestamp(row.ready_ns) && is_timestamp(row.start_ns) && is_timestamp(row.end_ns);
}

void write_segment(const std::filesystem::path& directory, const SegmentKey& key,
                   const Timeline& rows) {
  write_segment(directory, {key.schedule, key.iteration}, {key.rank}, rows);
}

void write_segment(const std::filesystem::path& directory, const IterationKey& key,
                   const std::vector<int>& ranks, const Timeline& rows) {
  if (!std::ranges::is_sorted(rows.rows, {}, &TimelineRow::op))
    return write_segment(directory, key, ranks, ordered_by_op(rows));
  LONGHAUL_ASSERT(!ranks.empty(), "a segment of no rank");
  const SegmentIndex index = index_of(rows.rows, ranks);
  for (const TimelineRow& row : rows.rows)
    LONGHAUL_ASSERT(is_sound(rows, row, rows.rows.front().schedule, key.iteration),
                    "op {} of another iteration in segment {} {}", row.op, key.schedule,
                    key.iteration);
  const SegmentName name{key, static_cast<int>(index.ranks.front()),
                         static_cast<int>(index.ranks.size())};
  hdf5::write_new_file(directory / to_string(name), hdf5::Writing::at_once, [&](hdf5::Id root) {
    hdf5::write_attribute(root, "schema_version", std::int64_t{kTraceSchemaVersion});
    write_index(root, index);
    const auto storage =
        rows.rows.size() < kLeastCompressed ? hdf5::Storage::plain : hdf5::Storage::compressed;
    hdf5::write_timeline(root, "measured", rows, storage, hdf5::kSegmentChunkRows,
                         hdf5::EmptyColumns::are_left_out);
  });
}

}  // namespace longhaul::trace
