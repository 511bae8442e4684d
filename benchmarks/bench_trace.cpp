// What do traces of thousands of ranks cost? Writes a synthetic run host by host, merges and
// validates it, and prints rows per second, bytes per row and memory of each step. One process.
#include <cstdlib>
#include <numeric>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "base/version.hpp"
#include "harness/environment/run_facts.hpp"
#include "harness/trace_cost/phase.hpp"
#include "harness/trace_cost/synthetic_run.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::bench {
namespace {

struct TraceOptions {
  SyntheticShape shape{.ranks = 1024, .stages = 0, .iterations = 10, .events = 100'000, .seed = 1};
  int ranks_per_host = 8;
  std::string memory_limit;
  std::filesystem::path directory;
  bool in_memory = false, keep = false, check = false, json = false;
  std::string command_line;
};

void declare(CLI::App& app, TraceOptions& options) {
  app.add_option("--ranks", options.shape.ranks)->check(CLI::Range(1, 1 << 20));
  app.add_option("--events", options.shape.events, "rows of a rank on average, in all iterations")
      ->check(CLI::Range(6LL, 1'000'000'000LL));
  app.add_option("--iterations", options.shape.iterations)->check(CLI::Range(1, 1'000'000));
  app.add_option("--stages", options.shape.stages, "of a pipeline (default: at most 32)");
  app.add_option("--ranks-per-host", options.ranks_per_host, "whose rows share a file")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--seed", options.shape.seed);
  app.add_option("--memory-limit", options.memory_limit, "of each step's address space: 2GiB");
  app.add_option("--directory", options.directory, "new one for the files (default: in TMPDIR)");
  app.add_flag("--in-memory", options.in_memory,
               "merge and validate with all rows in memory, for comparison");
  app.add_flag("--keep", options.keep, "leave the files there");
  app.add_flag("--check", options.check, "a tiny run: 8 ranks, 600 events each, 2 iterations");
  app.add_flag("--json", options.json, "print a record instead of a table");
}

int stages_of(const SyntheticShape& shape) {
  int stages = std::min(shape.ranks, 32);
  while (shape.ranks % stages != 0) --stages;
  return stages;
}

/// False: it was there.
bool make_directory(const std::filesystem::path& directory) {
  std::error_code problem;
  const bool made = std::filesystem::create_directory(directory, problem);
  if (problem)
    fail("cannot make {} ({}). Give --directory another name.", directory.string(),
         problem.message());
  return made;
}

void complete(TraceOptions& options) {
  SyntheticShape& shape = options.shape;
  if (options.check) shape = {8, 4, 2, 600, shape.seed};
  if (shape.stages <= 0) shape.stages = stages_of(shape);
  if (shape.ranks % shape.stages != 0)
    fail("--stages {} does not divide --ranks {} (pipelines are alike). Give another number.",
         shape.stages, shape.ranks);
  if (options.directory.empty()) {
    std::string name = (std::filesystem::temp_directory_path() / "bench_trace-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) fail("no directory {} can be made.", name);
    options.directory = name;
  } else if (!make_directory(options.directory)) {
    fail("{} exists (a result is never overwritten). Give --directory another name.",
         options.directory.string());
  }
}

std::int64_t write_segments(const TraceOptions& options, const SyntheticRun& run) {
  RunInfo info;
  info.creator = fmt::format("bench_trace {}", version());
  info.git_commit = git_commit();
  info.command_line = options.command_line;
  info.environment = local_environment(options.command_line).dump();
  begin_run(options.directory, info, {}, options.shape.ranks);
  std::int64_t rows = 0;
  for (int iteration = 0; iteration < options.shape.iterations; ++iteration) {
    for (int first = 0; first < options.shape.ranks; first += options.ranks_per_host) {
      std::vector<int> ranks(
          static_cast<std::size_t>(std::min(options.ranks_per_host, options.shape.ranks - first)));
      std::iota(ranks.begin(), ranks.end(), first);
      const Timeline timeline = run.rows_of(ranks, iteration);
      write_segment(options.directory, IterationKey{0, iteration}, ranks, timeline);
      rows += std::ssize(timeline.rows);
    }
  }
  return rows;
}

std::int64_t merge(const TraceOptions& options) {
  const auto file = options.directory / "trace.h5";
  if (!options.in_memory)
    return static_cast<std::int64_t>(merge_run_into(options.directory, file).measured);
  const Trace trace = merge_run(options.directory);
  write_trace(file, trace);
  return std::ssize(trace.measured.rows);
}

void validate(const TraceOptions& options) {
  const auto file = options.directory / "trace.h5";
  if (options.in_memory) return static_cast<void>(read_trace(file));
  const std::vector<std::string> found = validate_trace(file);
  if (!found.empty())
    throw Error{fmt::format("the trace is wrong: {}", found.front()), ExitCode::answer_is_no};
}

struct Disk {
  std::uintmax_t segments = 0, files = 0, trace = 0;
};
Disk disk_use(const std::filesystem::path& directory) {
  Disk disk;
  for (const auto& entry : std::filesystem::directory_iterator{directory}) {
    const bool segment = entry.path().filename().string().starts_with("segment.");
    if (segment) ++disk.files;
    (segment ? disk.segments : disk.trace) += entry.file_size();
  }
  return disk;
}

std::string table_of(const std::vector<PhaseCost>& phases) {
  using Align = longhaul::Align;
  Table table{{{"step", Align::left}, {"rows"}, {"s"}, {"CPU s"}, {"rows/s"}, {"peak memory"}}};
  for (const PhaseCost& phase : phases)
    table.add_row({phase.name, std::to_string(phase.rows), fmt::format("{:.2f}", phase.seconds),
                   fmt::format("{:.2f}", phase.processor_seconds),
                   fmt::format("{:.3g}", static_cast<double>(phase.rows) / phase.seconds),
                   to_text(phase.peak_memory)});
  return table.text();
}

nlohmann::json record_of(const std::vector<PhaseCost>& phases, const TraceOptions& options,
                         const Disk& disk) {
  nlohmann::json record = {{"schema_version", 1},
                           {"git_commit", git_commit()},
                           {"command_line", options.command_line},
                           {"environment", local_environment(options.command_line)},
                           {"kind", "measured"},
                           {"ranks", options.shape.ranks},
                           {"iterations", options.shape.iterations},
                           {"ranks_per_host", options.ranks_per_host},
                           {"segment_files", disk.files},
                           {"segment_bytes", disk.segments},
                           {"trace_bytes", disk.trace},
                           {"steps", nlohmann::json::array()}};
  for (const PhaseCost& phase : phases)
    record["steps"].push_back({{"name", phase.name},
                               {"rows", phase.rows},
                               {"seconds", phase.seconds},
                               {"processor_seconds", phase.processor_seconds},
                               {"peak_memory_bytes", phase.peak_memory.count()}});
  return record;
}

void report(const std::vector<PhaseCost>& phases, const TraceOptions& options, const Disk& disk) {
  if (options.json) return fmt::print("{}\n", record_of(phases, options, disk).dump(2));
  const auto rows = static_cast<double>(phases.front().rows);
  fmt::print("{}\n{} segment files, {:.1f} bytes a row; trace.h5 {:.1f} bytes a row\n",
             table_of(phases), disk.files, static_cast<double>(disk.segments) / rows,
             static_cast<double>(disk.trace) / rows);
}

void measure(const TraceOptions& options) {
  const SyntheticRun run{options.shape};
  std::optional<Bytes> limit;
  if (!options.memory_limit.empty()) limit = parse_bytes(options.memory_limit);
  const std::int64_t expected = run.rows_of_iteration() * options.shape.iterations;
  const auto counted = [&](std::int64_t rows) {
    if (rows != expected) fail("{} rows came of {}", rows, expected);
    return rows;
  };
  std::vector<PhaseCost> phases;
  phases.push_back(
      run_phase("write", limit, [&] { return counted(write_segments(options, run)); }));
  phases.push_back(run_phase("merge", limit, [&] { return counted(merge(options)); }));
  phases.push_back(run_phase("validate", limit, [&] {
    validate(options);
    return expected;
  }));
  report(phases, options, disk_use(options.directory));
}

ExitCode main_of(int argc, char** argv) {
  TraceOptions options;
  CLI::App app{"Writes, merges and validates the trace of a synthetic run."};
  declare(app, options);
  try {
    options.command_line = command_line(argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? ExitCode::fine : ExitCode::bad_input;
  }
  complete(options);
  const auto clean_up = [&] {
    if (!options.keep) std::filesystem::remove_all(options.directory);
  };
  try {
    measure(options);
  } catch (...) {
    clean_up();
    throw;
  }
  clean_up();
  return ExitCode::fine;
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  try {
    return static_cast<int>(longhaul::bench::main_of(argc, argv));
  } catch (const longhaul::Error& error) {
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {  // the system's: no TMPDIR, no memory
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(longhaul::ExitCode::run_failed);
  }
}
