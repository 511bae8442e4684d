#include "trace/segment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "trace/columns.hpp"
#include "trace/hdf5_file.hpp"
#include "trace/hdf5_timeline.hpp"
#include "trace/hdf5_types.hpp"

namespace longhaul {
namespace {

constexpr std::string_view kPrefix = "segment.";
constexpr std::string_view kSuffix = ".h5";
constexpr const char* kGroup = "measured";
/// Merging subtracts times: two of these still differ by less than 2^63.
constexpr std::int64_t kLargestTimestamp = std::int64_t{1} << 62;

bool is_timestamp(std::int64_t time_ns) {
  return -kLargestTimestamp < time_ns && time_ns < kLargestTimestamp;
}

bool belongs(const Timeline& timeline, const TimelineRow& row, const SegmentKey& key) {
  const bool indices_fit = std::ranges::all_of(name_columns(), [&](const NameColumn& table) {
    const std::int32_t index = row.*table.index;
    return index >= table.lowest &&
           (index < 0 || std::cmp_less(index, (timeline.*table.names).size()));
  });
  return indices_fit && row.iteration == key.iteration && row.rank == key.rank &&
         row.schedule == timeline.rows.front().schedule && is_timestamp(row.ready_ns) &&
         is_timestamp(row.start_ns) && is_timestamp(row.end_ns);
}

bool is_sound(const Timeline& timeline, const SegmentKey& key) {
  return std::ranges::all_of(timeline.rows,
                             [&](const TimelineRow& row) { return belongs(timeline, row, key); });
}

}  // namespace

std::string segment_name(const SegmentKey& key) {
  return fmt::format("{}{}.{}.{}{}", kPrefix, key.schedule, key.iteration, key.rank, kSuffix);
}

std::optional<SegmentKey> parse_segment_name(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
      name.size() < kPrefix.size() + kSuffix.size())
    return std::nullopt;
  const char* at = name.data() + kPrefix.size();
  const char* const end = name.data() + name.size() - kSuffix.size();
  std::array<int, 3> ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto [behind, status] = std::from_chars(at, end, ids[i]);
    const bool last = i + 1 == ids.size();
    if (status != std::errc{} || ids[i] < 0 || (last ? behind != end : *behind != '.'))
      return std::nullopt;
    at = behind + 1;
  }
  const SegmentKey key{ids[0], ids[1], ids[2]};
  if (segment_name(key) != name) return std::nullopt;  // "segment.01.2.3.h5" is not ours
  return key;
}

SegmentFiles find_segments(const std::filesystem::path& directory) {
  std::error_code error;
  SegmentFiles files;
  std::filesystem::directory_iterator entries{directory, error};
  for (; !error && entries != std::filesystem::directory_iterator{}; entries.increment(error)) {
    if (const auto key = parse_segment_name(entries->path().filename().string()))
      files[{key->schedule, key->iteration}][key->rank] = entries->path();
  }
  if (error)
    fail("cannot list {} ({}). Name the directory of a run.", directory.string(), error.message());
  return files;
}

std::optional<Timeline> read_segment(const std::filesystem::path& file, const SegmentKey& key) {
  Timeline timeline;
  Findings findings;
  try {
    const hdf5::Handle handle = hdf5::open_file(file);
    const std::uint64_t file_bytes = hdf5::size_of_file(file);
    if (hdf5::read_int_attribute(handle.get(), "schema_version") != kTraceSchemaVersion)
      return std::nullopt;
    hdf5::read_timeline(handle.get(), kGroup, file_bytes, timeline, findings);
  } catch (const Error&) {
    return std::nullopt;
  }
  if (!findings.empty() || !is_sound(timeline, key)) return std::nullopt;
  return timeline;
}

void write_segment(const std::filesystem::path& directory, const SegmentKey& key,
                   const Timeline& rows) {
  LONGHAUL_ASSERT(is_sound(rows, key), "rows of another rank or iteration in segment {} {} {}",
                  key.schedule, key.iteration, key.rank);
  hdf5::write_new_file(directory / segment_name(key), hdf5::Writing::at_once, [&](hdf5::Id root) {
    hdf5::write_attribute(root, "schema_version", std::int64_t{kTraceSchemaVersion});
    hdf5::write_timeline(root, kGroup, rows, hdf5::Storage::plain);
  });
}

}  // namespace longhaul
