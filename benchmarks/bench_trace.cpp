// What do traces of thousands of ranks cost? Writes a synthetic run host by host, merges and
// validates it, and prints rows per second, bytes per row and memory of each step. One process.
#include <cstdlib>

#include "base/error.hpp"
#include "base/program/program.hpp"
#include "base/unit_text.hpp"
#include "harness/environment/facts.hpp"
#include "harness/environment/shared_options.hpp"
#include "harness/trace_cost/phases.hpp"

namespace longhaul::bench {
namespace {

void declare(Arguments& arguments, harness::TraceOptions& options) {
  arguments.option("--ranks", options.shape.ranks).within(1, 1 << 20);
  arguments.option("--events", options.shape.events, "rows of a rank on average, in all iterations")
      .within(std::int64_t{6}, std::int64_t{1'000'000'000});
  arguments.option("--iterations", options.shape.iterations).within(1, 1'000'000);
  arguments.option("--stages", options.shape.stages, "of a pipeline (default: at most 32)");
  arguments.option("--ranks-per-host", options.ranks_per_host, "whose rows share a file")
      .within(1, 1 << 20);
  arguments.option("--seed", options.shape.seed);
  arguments.option("--memory-limit", options.memory_limit, "of each step's address space: 2GiB");
  arguments.option("--directory", options.directory, "new one for the files (default: in TMPDIR)");
  arguments.flag("--in-memory", options.in_memory,
                 "merge and validate with all rows in memory, for comparison");
  arguments.flag("--keep", options.keep, "leave the files there");
  harness::add_shared_options(
      arguments, options,
      {{harness::Shared::check, "a tiny run: 8 ranks, 600 events each, 2 iterations"},
       {harness::Shared::json, "print a record instead of a table"}});
}

int stages_of(const harness::SyntheticShape& shape) {
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

void complete(harness::TraceOptions& options) {
  harness::SyntheticShape& shape = options.shape;
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

void measure(const harness::TraceOptions& options) {
  const harness::SyntheticRun run{options.shape};
  std::optional<Bytes> limit;
  if (!options.memory_limit.empty()) limit = parse_bytes(options.memory_limit);
  const std::int64_t expected = run.rows_of_iteration() * options.shape.iterations;
  const auto counted = [&](std::int64_t rows) {
    if (rows != expected) fail("{} rows came of {}", rows, expected);
    return rows;
  };
  std::vector<harness::PhaseCost> phases;
  phases.push_back(harness::run_phase(
      "write", limit, [&] { return counted(harness::write_segments(options, run)); }));
  phases.push_back(
      harness::run_phase("merge", limit, [&] { return counted(harness::merge(options)); }));
  phases.push_back(harness::run_phase("validate", limit, [&] {
    harness::validate(options);
    return expected;
  }));
  fmt::print("{}", options.json ? harness::trace_record(phases, options)
                                : harness::trace_table(phases, options));
}

int main_of(int argc, char** argv) {
  harness::TraceOptions options;
  Arguments arguments{"Writes, merges and validates the trace of a synthetic run."};
  declare(arguments, options);
  arguments.footer(harness::help_footer({"build/bin/bench_trace"}));
  options.command_line = harness::command_line(argc, argv);
  if (const auto code = read_arguments(arguments, argc, argv)) return static_cast<int>(*code);
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
  return 0;
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::run_program([&] { return longhaul::bench::main_of(argc, argv); });
}
