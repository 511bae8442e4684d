#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/file/trace_file.hpp"
#include "trace/file/trace_reader.hpp"
#include "trace/validate/check_rows.hpp"

namespace longhaul::trace {
namespace {

struct RowRange {
  std::uint64_t first, count;
};

bool is_wanted(const TimelineRow& row, const Timeline& names, const TracePart& part) {
  if (part.iteration && row.iteration != *part.iteration) return false;
  if (!part.schedule) return true;
  const auto schedule = at(row.schedule);
  return schedule < names.schedules.size() && names.schedules[schedule] == *part.schedule;
}

/// Rows lie together by iteration, so there are few ranges.
std::vector<RowRange> ranges_of(const hdf5::TimelineReader& reader, const TracePart& part) {
  std::vector<RowRange> ranges;
  std::vector<TimelineRow> keys(hdf5::kTraceChunkRows);
  for (std::uint64_t at = 0; at < reader.rows(); at += keys.size()) {
    keys.resize(std::min<std::uint64_t>(keys.size(), reader.rows() - at));
    reader.read_keys(at, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!is_wanted(keys[i], reader.names(), part)) continue;
      if (ranges.empty() || ranges.back().first + ranges.back().count != at + i)
        ranges.push_back({at + i, 0});
      ++ranges.back().count;
    }
  }
  return ranges;
}

std::uint64_t rows_in(const std::vector<RowRange>& ranges) {
  std::uint64_t rows = 0;
  for (const RowRange& range : ranges) rows += range.count;
  return rows;
}

Timeline read_ranges(const hdf5::TimelineReader& reader, const std::vector<RowRange>& ranges) {
  Timeline timeline = reader.names();
  timeline.rows.resize(to_size(rows_in(ranges)));
  std::span rest{timeline.rows};
  for (const RowRange& range : ranges) {
    const auto rows = rest.first(to_size(range.count));
    for (std::size_t at = 0; at < rows.size(); at += hdf5::kTraceChunkRows)
      reader.read(range.first + at,
                  rows.subspan(at, std::min(hdf5::kTraceChunkRows, rows.size() - at)));
    rest = rest.subspan(rows.size());
  }
  return timeline;
}

}  // namespace

TraceOverview overview_of(const std::filesystem::path& file) {
  const hdf5::Silence silence;
  Diagnostics findings;
  const hdf5::TraceReader reader{file, findings};
  hdf5::require_none(file, findings);
  TraceOverview overview{reader.info().creator, reader.measured().rows(),
                         reader.predicted().rows()};
  overview.notes = left_out_of(reader.measured().names(), "measured");
  std::ranges::copy(left_out_of(reader.predicted().names(), "predicted"),
                    std::back_inserter(overview.notes));
  return overview;
}

Trace read_trace_part(const std::filesystem::path& file, const TracePart& part,
                      std::uint64_t most_rows) {
  const hdf5::Silence silence;
  Diagnostics findings;
  const hdf5::TraceReader reader{file, findings};
  hdf5::require_none(file, findings);
  const auto measured = ranges_of(reader.measured(), part);
  const auto predicted = ranges_of(reader.predicted(), {part.schedule, {}});
  const std::uint64_t rows = rows_in(measured) + rows_in(predicted);
  if (rows > most_rows)
    fail(
        "{}: {} rows of it do not fit into memory (the most is {}). Select with --schedule and "
        "--iteration; longhaul check reads traces of any size.",
        file.string(), rows, most_rows);
  Trace trace{reader.info(), read_ranges(reader.measured(), measured),
              read_ranges(reader.predicted(), predicted)};
  check_rows(trace.predicted, "predicted", 0, findings);
  check_rows(trace.measured, "measured", measured_slack_ns(trace.info.environment), findings);
  hdf5::require_none(file, findings);
  return trace;
}

}  // namespace longhaul::trace
