#include "cli/trace/trace_source.hpp"

#include <algorithm>

#include "trace/file/trace_file.hpp"

namespace longhaul::cli {
namespace {

void require_source(const std::filesystem::path& source) {
  std::error_code ignored;
  if (!std::filesystem::exists(source, ignored))
    fail("{}: cannot be read (there is no such file). Name a trace or a run's directory.",
         source.string());
}

/// About 3 GiB in memory.
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 24;
/// A row takes some 10 bytes in large segments, which are compressed, and 130 in small ones.
constexpr std::uintmax_t kMostSegmentBytes = std::uintmax_t{1} << 29;

trace::Trace load_file(const std::filesystem::path& file, const Options& options) {
  const trace::TraceOverview overview = trace::overview_of(file);
  for (const std::string& note : overview.notes) fmt::print(stderr, "longhaul: {}\n", note);
  if (overview.measured_rows + overview.predicted_rows <= kMostRows) return trace::read_trace(file);
  trace::TracePart part;
  if (!options.schedule.empty()) part.schedule = options.schedule;
  part.iteration = options.iteration;
  return trace::read_trace_part(file, part, kMostRows);
}

void require_few_segments(const std::filesystem::path& directory) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator{directory})
    if (entry.path().filename().string().starts_with("segment.") && entry.is_regular_file())
      bytes += entry.file_size();
  if (bytes > kMostSegmentBytes)
    fail(
        "{}: the rows of this run do not fit into memory ({} bytes of segments). Merge it with "
        "`longhaul trace merge`, then select with --schedule and --iteration.",
        directory.string(), bytes);
}

}  // namespace

trace::Trace load_trace(const std::filesystem::path& source, const Options& options) {
  require_source(source);
  if (!std::filesystem::is_directory(source)) return load_file(source, options);
  const std::filesystem::path merged = source / "trace.h5";
  if (std::filesystem::exists(merged)) return load_file(merged, options);
  require_few_segments(source);
  return trace::merge_run(source);
}

std::vector<std::string> traced_schedules(const trace::Trace& trace, const Options& options) {
  return report::traced_schedules(trace, options.schedule);
}

void require_iteration(const trace::Trace& trace, const std::vector<std::string>& schedules,
                       const Options& options) {
  if (!options.iteration) return;
  for (const std::string& schedule : schedules) {
    const auto position = position_of(trace.measured, schedule);
    const std::vector<int> known =
        position ? iteration_numbers(trace.measured, *position) : std::vector<int>{};
    if (known.empty())
      fail("--iteration: no iteration of {} was measured. Leave it out, or choose a --schedule.",
           schedule);
    if (!std::binary_search(known.begin(), known.end(), *options.iteration))
      fail("--iteration: {} has no measured iteration {} (there are {}). Choose one of them.",
           schedule, *options.iteration, fmt::join(known, ", "));
  }
}

}  // namespace longhaul::cli
