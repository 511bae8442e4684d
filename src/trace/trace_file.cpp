#include "trace/trace_file.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "trace/check_rows.hpp"
#include "trace/hdf5_file.hpp"
#include "trace/hdf5_timeline.hpp"
#include "trace/run_info.hpp"

namespace longhaul {
namespace {

/// Everything of a file that can be read, and all that is wrong with it.
Trace load_and_check(const std::filesystem::path& file, Findings& findings) {
  Trace trace = hdf5::load_trace(file, findings);
  if (!findings.empty()) return trace;
  check_rows(trace.predicted, "predicted", 0, findings);
  check_rows(trace.measured, "measured", kMeasuredSlackNs, findings);
  return trace;
}

}  // namespace

Trace hdf5::load_trace(const std::filesystem::path& file, Findings& findings) {
  const Silence silence;
  Trace trace;
  try {
    const Handle handle = open_file(file);
    const std::uint64_t file_bytes = size_of_file(file);
    trace.info = read_run_info(handle.get(), file_bytes, findings);
    read_timeline(handle.get(), "measured", file_bytes, trace.measured, findings);
    read_timeline(handle.get(), "predicted", file_bytes, trace.predicted, findings);
  } catch (const Error& error) {
    findings.add("file", fmt::format("it cannot be opened ({}).", error.what()));
  }
  return trace;
}

void write_trace(const std::filesystem::path& file, const Trace& trace) {
  hdf5::write_new_file(file, hdf5::Writing::piecewise, [&](hdf5::Id root) {
    hdf5::write_run_info(root, trace.info);
    hdf5::write_timeline(root, "measured", trace.measured, hdf5::Storage::compressed);
    hdf5::write_timeline(root, "predicted", trace.predicted, hdf5::Storage::compressed);
  });
}

Trace read_trace(const std::filesystem::path& file) {
  Findings findings;
  Trace trace = load_and_check(file, findings);
  if (findings.empty()) return trace;
  const std::vector<std::string> texts = findings.texts();
  const std::string more =
      texts.size() > 1 ? fmt::format(" And {} more findings.", texts.size() - 1) : "";
  fail("{} is no valid trace: {}{} See all with `longhaul check`.", file.string(), texts.front(),
       more);
}

std::vector<std::string> validate_trace(const std::filesystem::path& file) {
  Findings findings;
  load_and_check(file, findings);
  return findings.texts();
}

}  // namespace longhaul
