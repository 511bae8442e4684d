#include <algorithm>
#include <map>
#include <ranges>
#include <span>

#include "base/error.hpp"
#include "trace/columns.hpp"
#include "trace/hdf5_file.hpp"
#include "trace/hdf5_timeline.hpp"
#include "trace/hdf5_types.hpp"
#include "trace/name_table.hpp"
#include "trace/run_info.hpp"
#include "trace/segment.hpp"

namespace longhaul {
namespace {

constexpr const char* kRunFile = "run.h5";
constexpr const char* kRanks = "ranks";

std::int64_t read_ranks(const std::filesystem::path& file) {
  const hdf5::Silence silence;
  try {
    const hdf5::Handle handle = hdf5::open_file(file);
    const std::int64_t ranks = hdf5::read_int_attribute(handle.get(), kRanks);
    if (ranks < 1) fail("it states {} ranks", ranks);
    return ranks;
  } catch (const Error& error) {
    fail("{} does not begin a run ({}). Name the directory of a run.", file.string(), error.what());
  }
}

/// Iterations of which segments of all ranks exist.
SegmentFiles complete_segments(const std::filesystem::path& directory, std::int64_t ranks) {
  SegmentFiles files = find_segments(directory);
  std::erase_if(files, [&](const auto& iteration) {
    // Ranks are unique and not negative: the lowest `ranks` are there if the last of them is in
    // its place.
    const auto& by_rank = iteration.second;
    return std::cmp_less(by_rank.size(), ranks) ||
           std::next(by_rank.begin(), static_cast<std::ptrdiff_t>(ranks - 1))->first != ranks - 1;
  });
  return files;
}

/// Gathers segments into one timeline whose tables begin with those of the prediction, so that the
/// same name has the same index in both groups.
class Merger {
public:
  Merger(const Timeline& predicted, std::span<const RankClock> clocks)
      : clocks_{clocks},
        merged_{
            predicted.schedules, predicted.datacenters, predicted.lanes, predicted.resources, {}},
        planned_schedules_{predicted.schedules.size()} {
    for (const NameColumn& table : name_columns()) tables_.emplace_back(merged_.*table.names);
  }

  /// Adds an iteration; skips it if a segment of it is damaged.
  void add(const IterationKey& key, const std::map<int, std::filesystem::path>& files,
           std::int64_t ranks) {
    std::vector<Timeline> segments;
    for (const auto& [rank, file] : files | std::views::take(ranks)) {
      auto segment = read_segment(file, {key.schedule, key.iteration, rank});
      if (!segment) return;
      if (!clocks_.empty()) move(*segment, clocks_[static_cast<std::size_t>(rank)]);
      segments.push_back(std::move(*segment));
    }
    const std::size_t first = merged_.rows.size();
    for (const Timeline& segment : segments) append(segment, key);
    const auto rows = std::span{merged_.rows}.subspan(first);
    start_at_zero(rows);
    std::ranges::stable_sort(rows, {}, &TimelineRow::op);
  }

  Timeline take() { return std::move(merged_); }

private:
  void append(const Timeline& segment, const IterationKey& key) {
    if (segment.rows.empty()) return;
    std::vector<std::vector<std::int32_t>> translations;
    for (std::size_t t = 0; t < name_columns().size(); ++t) {
      const NameColumn& table = name_columns()[t];
      auto& translation = translations.emplace_back();
      if (table.names == &Timeline::schedules) continue;
      for (const std::string& name : segment.*table.names)
        translation.push_back(tables_[t].index_of(name));
    }
    const std::int32_t schedule = schedule_of(
        key.schedule, segment.schedules[static_cast<std::size_t>(segment.rows.front().schedule)]);
    for (TimelineRow row : segment.rows) {
      for (std::size_t t = 0; t < name_columns().size(); ++t) {
        std::int32_t& index = row.*name_columns()[t].index;
        if (!translations[t].empty() && index >= 0)
          index = translations[t][static_cast<std::size_t>(index)];
      }
      row.schedule = schedule;
      merged_.rows.push_back(row);
    }
  }

  /// A schedule's place in the merged table is its position in the run's list, where the
  /// prediction holds that list; two of one name stay apart.
  std::int32_t schedule_of(int position, const std::string& name) {
    const auto [at, is_new] = schedule_of_position_.try_emplace(position, 0);
    if (is_new) at->second = place(position, name);
    return at->second;
  }
  std::int32_t place(int position, const std::string& name) {
    auto& names = merged_.schedules;
    const auto here = static_cast<std::size_t>(position);
    if (here < planned_schedules_ && names[here] == name) return position;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      const bool taken = std::ranges::any_of(schedule_of_position_, [&](const auto& used) {
        return used.first != position && used.second == index;
      });
      if (names[i] == name && !taken) return index;
    }
    names.push_back(name);
    return static_cast<std::int32_t>(names.size() - 1);
  }

  static void move(Timeline& segment, const RankClock& clock) {
    for (TimelineRow& row : segment.rows)
      for (std::int64_t* stamp : {&row.ready_ns, &row.start_ns, &row.end_ns})
        *stamp = clock.moved(*stamp);
  }

  /// Moves an iteration so that its first op starts at 0. An op was ready no earlier than that.
  static void start_at_zero(std::span<TimelineRow> rows) {
    if (rows.empty()) return;
    const std::int64_t origin = std::ranges::min(rows, {}, &TimelineRow::start_ns).start_ns;
    for (TimelineRow& row : rows) {
      row.ready_ns = std::max<std::int64_t>(row.ready_ns - origin, 0);
      row.start_ns -= origin;
      row.end_ns -= origin;
    }
  }

  std::span<const RankClock> clocks_;  ///< index: rank; empty: nobody's drifts
  Timeline merged_;
  std::size_t planned_schedules_;
  std::vector<NameTable> tables_;  ///< in the order of name_columns()
  std::map<int, std::int32_t> schedule_of_position_;
};

}  // namespace

void begin_run(const std::filesystem::path& directory, const RunInfo& info,
               const Timeline& predicted, int ranks) {
  LONGHAUL_ASSERT(ranks > 0, "a run of {} ranks", ranks);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    fail("cannot make {} ({}). Choose a directory that can be written.", directory.string(),
         error.message());
  if (!find_segments(directory).empty())
    fail(
        "{} holds segments of another run (a result is never overwritten). Choose another "
        "directory.",
        directory.string());
  hdf5::write_new_file(directory / kRunFile, hdf5::Writing::piecewise, [&](hdf5::Id root) {
    hdf5::write_run_info(root, info);
    hdf5::write_attribute(root, kRanks, std::int64_t{ranks});
    hdf5::write_timeline(root, "measured", {}, hdf5::Storage::plain);
    hdf5::write_timeline(root, "predicted", predicted, hdf5::Storage::compressed);
  });
}

std::vector<IterationKey> finished_iterations(const std::filesystem::path& directory) {
  std::vector<IterationKey> keys;
  for (const auto& [key, files] : complete_segments(directory, read_ranks(directory / kRunFile)))
    keys.push_back(key);
  return keys;
}

Trace merge_run(const std::filesystem::path& directory, std::span<const RankClock> clocks) {
  const std::filesystem::path run_file = directory / kRunFile;
  const std::int64_t ranks = read_ranks(run_file);
  LONGHAUL_ASSERT(clocks.empty() || std::cmp_equal(clocks.size(), ranks), "{} clocks of {} ranks",
                  clocks.size(), ranks);
  Trace trace = read_trace(run_file);
  const hdf5::Silence silence;
  Merger merger{trace.predicted, clocks};
  for (const auto& [key, files] : complete_segments(directory, ranks))
    merger.add(key, files, ranks);
  trace.measured = merger.take();
  return trace;
}

}  // namespace longhaul
