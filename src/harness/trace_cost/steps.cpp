#include <numeric>

#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "harness/environment/facts.hpp"
#include "harness/trace_cost/phases.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::harness {

std::int64_t write_segments(const TraceOptions& options, const SyntheticRun& run) {
  trace::RunInfo info;
  info.creator = fmt::format("bench_trace {}", version());
  info.git_commit = git_commit();
  info.command_line = options.command_line;
  info.environment = local_environment(options.command_line).dump();
  trace::begin_run(options.directory, info, {}, options.shape.ranks);
  std::int64_t rows = 0;
  for (int iteration = 0; iteration < options.shape.iterations; ++iteration) {
    for (int first = 0; first < options.shape.ranks; first += options.ranks_per_host) {
      std::vector<int> ranks(
          static_cast<std::size_t>(std::min(options.ranks_per_host, options.shape.ranks - first)));
      std::iota(ranks.begin(), ranks.end(), first);
      const Timeline timeline = run.rows_of(ranks, iteration);
      trace::write_segment(options.directory, IterationKey{0, iteration}, ranks, timeline);
      rows += std::ssize(timeline.rows);
    }
  }
  return rows;
}

std::int64_t merge(const TraceOptions& options) {
  const auto file = options.directory / "trace.h5";
  if (!options.in_memory)
    return static_cast<std::int64_t>(trace::merge_run_into(options.directory, file).measured);
  const trace::Trace trace = trace::merge_run(options.directory);
  trace::write_trace(file, trace);
  return std::ssize(trace.measured.rows);
}

void validate(const TraceOptions& options) {
  const auto file = options.directory / "trace.h5";
  if (options.in_memory) return static_cast<void>(trace::read_trace(file));
  const std::vector<std::string> found = trace::validate_trace(file);
  if (!found.empty())
    throw Error{fmt::format("the trace is wrong: {}", found.front()), ExitCode::answer_is_no};
}

}  // namespace longhaul::harness
