#include <utility>

#include "base/error.hpp"
#include "trace/file/segment.hpp"
#include "trace/file/trace_reader.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"
#include "trace/hdf5/row_source.hpp"
#include "trace/merge/merge_rows.hpp"

namespace longhaul::trace {
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
    std::int64_t covered = 0;
    for (const auto& [lowest_rank, file] : iteration.second)
      if (lowest_rank < ranks) covered += file.name.ranks;
    return covered < ranks;
  });
  return files;
}

std::vector<IterationKey> keys_of(const SegmentFiles& files) {
  std::vector<IterationKey> keys;
  for (const auto& [key, of_ranks] : files) keys.push_back(key);
  return keys;
}

class MemoryTarget : public MergeTarget {
public:
  void append(std::span<const TimelineRow> rows) override {
    rows_.insert(rows_.end(), rows.begin(), rows.end());
  }
  void keep_rows() override { kept_ = rows_.size(); }
  void drop_rows() override { rows_.resize(kept_); }
  [[nodiscard]] std::vector<TimelineRow> take() { return std::move(rows_); }

private:
  std::vector<TimelineRow> rows_;
  std::size_t kept_ = 0;
};

class FileTarget : public MergeTarget {
public:
  explicit FileTarget(hdf5::TimelineWriter& writer) : writer_{writer} {}
  void append(std::span<const TimelineRow> rows) override { writer_.append(rows); }
  void keep_rows() override { writer_.keep_rows(); }
  void drop_rows() override { writer_.drop_rows(); }

private:
  hdf5::TimelineWriter& writer_;
};

/// The begin of a run: attributes, prediction, number of ranks.
struct RunHeader {
  explicit RunHeader(const std::filesystem::path& directory)
      : file{directory / kRunFile}, ranks{read_ranks(file)}, reader{file, findings} {
    hdf5::require_none(file, findings);
    hdf5::check_groups(reader, findings);
    hdf5::require_none(file, findings);
    if (!reader.predicted().names().left_out.empty())
      fail("{}: {} Merge it with the program that wrote it.", file.string(),
           left_out_of(reader.predicted().names(), "predicted").front());
  }
  std::filesystem::path file;
  std::int64_t ranks;
  Diagnostics findings;
  hdf5::TraceReader reader;
};

struct MergedSegments {
  Timeline names;  ///< that the rows use
  std::uint64_t left_out;
};

/// All finished iterations.
MergedSegments merge_segments(const std::filesystem::path& directory, const RunHeader& begun,
                              std::span<const RankClock> clocks, MergeTarget& target) {
  LONGHAUL_ASSERT(clocks.empty() || std::cmp_equal(clocks.size(), begun.ranks),
                  "{} clocks of {} ranks", clocks.size(), begun.ranks);
  Merger merger{begun.reader.predicted().names(), clocks, target};
  for (const auto& [key, files] : complete_segments(directory, begun.ranks))
    merger.add(key, files, begun.ranks);
  return {merger.names(), merger.left_out()};
}

/// The prediction with which the run began, and what was added meanwhile.
std::uint64_t write_predictions(hdf5::Id root, const RunHeader& begun, const Timeline& names,
                                const MergeOptions& options) {
  hdf5::TimelineWriter writer{root, "predicted"};
  RowsInFile rows{begun.reader.predicted()};
  for (std::uint64_t at = 0; at < rows.rows();) {
    const auto some = rows.from(at);
    writer.append(some);
    at += some.size();
  }
  Timeline added = options.add_predictions ? names : begun.reader.predicted().names();
  if (options.add_predictions) options.add_predictions(added);
  writer.append(added.rows);
  const std::uint64_t count = writer.rows();
  writer.finish(added);
  return count;
}

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
  return keys_of(complete_segments(directory, read_ranks(directory / kRunFile)));
}

std::vector<IterationKey> finished_iterations(const std::filesystem::path& directory, int ranks) {
  return keys_of(complete_segments(directory, ranks));
}

Trace merge_run(const std::filesystem::path& directory, std::span<const RankClock> clocks) {
  const hdf5::Silence silence;
  RunHeader begun{directory};
  Trace trace{begun.reader.info(), {}, {}};
  hdf5::read_all(begun.reader.predicted(), trace.predicted, begun.findings);
  hdf5::require_none(begun.file, begun.findings);
  MemoryTarget target;
  trace.measured = merge_segments(directory, begun, clocks, target).names;
  trace.measured.rows = target.take();
  return trace;
}

MergedRows merge_run_into(const std::filesystem::path& directory, const std::filesystem::path& file,
                          const MergeOptions& options) {
  const hdf5::Silence silence;
  const RunHeader begun{directory};
  RunInfo info = begun.reader.info();
  if (options.environment) info.environment = *options.environment;
  MergedRows rows;
  hdf5::write_new_file(file, hdf5::Writing::piecewise, [&](hdf5::Id root) {
    hdf5::write_run_info(root, info);
    hdf5::TimelineWriter writer{root, "measured"};
    FileTarget target{writer};
    const auto [names, left_out] = merge_segments(directory, begun, options.clocks, target);
    rows.measured = writer.rows();
    rows.iterations_left_out = left_out;
    writer.finish(names);
    rows.predicted = write_predictions(root, begun, names, options);
  });
  return rows;
}

}  // namespace longhaul::trace
