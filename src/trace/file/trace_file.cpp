#include "trace/file/trace_file.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "trace/file/trace_reader.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"
#include "trace/validate/check_rows.hpp"

namespace longhaul::trace {

void write_trace(const std::filesystem::path& file, const Trace& trace) {
  hdf5::write_new_file(file, hdf5::Writing::piecewise, [&](hdf5::Id root) {
    hdf5::write_run_info(root, trace.info);
    hdf5::write_timeline(root, "measured", trace.measured, hdf5::Storage::compressed);
    hdf5::write_timeline(root, "predicted", trace.predicted, hdf5::Storage::compressed);
  });
}

Trace read_trace(const std::filesystem::path& file) {
  const hdf5::Silence silence;
  Diagnostics findings;
  const hdf5::TraceReader reader{file, findings};
  hdf5::require_none(file, findings);
  Trace trace{reader.info(), {}, {}};
  hdf5::read_all(reader.measured(), trace.measured, findings);
  hdf5::read_all(reader.predicted(), trace.predicted, findings);
  hdf5::require_none(file, findings);
  check_rows(trace.predicted, "predicted", 0, findings);
  check_rows(trace.measured, "measured", measured_slack_ns(trace.info.environment), findings);
  hdf5::require_none(file, findings);
  return trace;
}

std::vector<std::string> left_out_of(const Timeline& timeline, const char* group) {
  std::vector<std::string> texts;
  for (const RowsLeftOut& kind : timeline.left_out)
    texts.push_back(
        fmt::format("{}: {} rows of kind {} ({}) are left out (this program does not know it).",
                    group, kind.rows, kind.kind, kind.name));
  return texts;
}

std::vector<std::string> validate_trace(const std::filesystem::path& file,
                                        const VisitorOfTrace& visitor_of) {
  const hdf5::Silence silence;
  Diagnostics findings;
  const hdf5::TraceReader reader{file, findings};
  if (findings.empty())
    hdf5::check_groups(reader, findings, visitor_of ? visitor_of(reader.info()) : nullptr);
  return findings.texts();
}

}  // namespace longhaul::trace
