#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <streambuf>

#include <sys/wait.h>
#include <unistd.h>

#include "fuzz/input.hpp"
#include "fuzz/lies.hpp"
#include "fuzz/refusal.hpp"
#include "fuzz/targets.hpp"
#include "trace/export/export.hpp"
#include "trace/file/segment.hpp"
#include "trace/file/trace_file.hpp"
#include "trace/file/trace_reader.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"
#include "trace/report/report.hpp"
#include "trace/sample_timeline.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::fuzz {
namespace {

namespace fs = std::filesystem;

/// HDF5 packs whole chunks: those of real traces take 100 ms.
constexpr std::size_t kChunkRows = 16;

/// Takes what is written and forgets it.
class Nowhere : public std::streambuf {
protected:
  int overflow(int letter) override { return letter == EOF ? 0 : letter; }
  std::streamsize xsputn(const char*, std::streamsize count) override { return count; }
};

/// A file that begins as a right one and is then lied in, as the input decides: in its rows before
/// they are written, in its structure after that.
void write_lies(const fs::path& file, Input& input, bool is_run) {
  trace::Trace trace;
  trace.info = {"longhaul", "0123456789ab", "bench_pipeline m.toml", "[run]", "{}", 1.0, 0};
  const testing::Shape shape{static_cast<int>(input.below(4)) + 1,
                             static_cast<int>(input.below(3)) + 1};
  trace.measured = testing::random_timeline(1, shape, static_cast<int>(input.below(3)));
  trace.predicted = testing::random_timeline(2, shape);
  const auto storage =
      input.below(2) == 0 ? trace::hdf5::Storage::compressed : trace::hdf5::Storage::plain;
  for (std::size_t lies = input.below(8); lies > 0; --lies)
    lie_in_rows(input.below(2) == 0 ? trace.measured : trace.predicted, input);
  trace::hdf5::write_new_file(file, trace::hdf5::Writing::at_once, [&](trace::hdf5::Id root) {
    trace::hdf5::write_run_info(root, trace.info);
    if (is_run) trace::hdf5::write_attribute(root, "ranks", std::int64_t{shape.ranks});
    trace::hdf5::write_timeline(root, "measured", trace.measured, storage, kChunkRows);
    trace::hdf5::write_timeline(root, "predicted", trace.predicted, storage, kChunkRows);
    for (int lies = 0; !input.at_end() && lies < 16; ++lies) lie_in_structure(root, input);
  });
}

constexpr unsigned kMostWriteSeconds = 3;

/// The same in a process of its own: HDF5 may crash on what it is told to write, write on without
/// an end, or fail to close it and be of no more use. There is no file then, or half of one.
void write_apart(const fs::path& file, Input input, bool is_run) {
  const pid_t child = fork();
  LONGHAUL_ASSERT(child >= 0, "cannot fork: {}", std::strerror(errno));
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM})
      std::signal(signal, SIG_DFL);
    alarm(kMostWriteSeconds);
    close(STDERR_FILENO);
    try {
      write_lies(file, input, is_run);
    } catch (const std::exception&) {
      _exit(EXIT_FAILURE);
    }
    _exit(EXIT_SUCCESS);
  }
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
}

/// All that the tool does with a trace that it takes for valid.
void use(const trace::Trace& trace) {
  Nowhere nowhere;
  std::ostream out{&nowhere};
  for (const Timeline* timeline : {&trace.measured, &trace.predicted}) {
    for (const IterationKey& key : trace::iterations_of(*timeline)) {
      static_cast<void>(trace::report_iteration(*timeline, key.schedule, key.iteration,
                                                trace.info.activation_budget_bytes));
      const auto rows = trace::rows_of(*timeline, key.schedule, key.iteration);
      static_cast<void>(trace::critical_path(rows));
      static_cast<void>(trace::attribute_idle(rows, trace.info.activation_budget_bytes));
    }
  }
  for (const auto export_to : {trace::export_chrome, trace::export_csv, trace::export_memory}) {
    try {
      export_to(trace, {}, out);
    } catch (const Error& error) {
      LONGHAUL_ASSERT(error.code() == ExitCode::bad_input, "{}", error.what());
    }
  }
}

void read(const fs::path& file) {
  try {
    use(trace::read_trace(file));
  } catch (const Error& error) {
    LONGHAUL_ASSERT(!trace::validate_trace(file).empty(), "valid, but not read: {}", error.what());
    expect_refusal(error, file.string());
  }
}

/// A run that was killed: what begins it and one segment, both with lies.
void merge(const fs::path& directory, Input& input) {
  const int ranks = static_cast<int>(input.below(4)) + 1;
  Input half{input.text(255)};
  write_apart(directory / trace::to_string(trace::SegmentName{{0, 0}, 0, ranks}), half, false);
  write_apart(directory / "run.h5", input, true);
  if (!fs::exists(directory / "run.h5")) return;
  try {
    use(trace::merge_run(directory));
  } catch (const Error& error) {
    expect_refusal(error, directory.string());
  }
}

}  // namespace

void trace(std::string_view bytes) {
  const testing::ScratchDirectory scratch;
  Input input{bytes};
  if (input.below(4) == 0) return merge(scratch.path(), input);
  const fs::path file = scratch.path() / "a.h5";
  write_apart(file, input, false);
  if (fs::exists(file)) read(file);
}

}  // namespace longhaul::fuzz
