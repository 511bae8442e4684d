#include <array>

#include "base/suggest.hpp"
#include "base/version.hpp"
#include "cli/commands.hpp"
#include "cli/evaluate.hpp"
#include "cli/files.hpp"
#include "cli/trace_source.hpp"
#include "trace/export.hpp"

namespace longhaul {
namespace {

using nlohmann::ordered_json;
using Export = void (*)(const Trace&, const Selection&, std::ostream&);

struct ExportFormat {
  const char* name;
  Export write;
};
constexpr std::array kFormats{ExportFormat{"chrome", export_chrome},
                              ExportFormat{"csv", export_csv}};

const ExportFormat& export_format_of(const std::string& text) {
  if (text.empty()) return kFormats.front();
  std::vector<std::string> known;
  for (const ExportFormat& format : kFormats) {
    if (text == format.name) return format;
    known.emplace_back(format.name);
  }
  fail("--format: unknown format \"{}\". {}", text, suggestion(text, known));
}

void require_out(const Options& options, const char* what) {
  if (options.out.empty()) fail("--out is missing (the command writes a file). Name {}.", what);
  require_new_file(options.out);
}

/// Keeps the rows of one schedule, known by its name: either timeline has its own table of names.
void keep_only(Timeline& timeline, const std::optional<int>& position) {
  std::erase_if(timeline.rows, [&](const TimelineRow& row) { return row.schedule != position; });
}

void keep_iteration(Timeline& measured, int iteration) {
  std::erase_if(measured.rows, [&](const TimelineRow& row) { return row.iteration != iteration; });
  if (measured.rows.empty())
    fail(
        "--iteration: nothing was measured in iteration {}. `longhaul trace summary` tells how "
        "many there are.",
        iteration);
}

ordered_json written_json(const Options& options, const Trace& trace) {
  return {{"schema_version", kRecordSchemaVersion},
          {"trace", options.files.front()},
          {"out", options.out},
          {"measured_rows", trace.measured.rows.size()},
          {"predicted_rows", trace.predicted.rows.size()}};
}

Answer written(const Options& options, const Trace& trace) {
  if (options.json) return {json_text(written_json(options, trace))};
  return {fmt::format("wrote {}: {} measured and {} predicted ops\n", options.out,
                      trace.measured.rows.size(), trace.predicted.rows.size())};
}

}  // namespace

Answer trace_export_command(const Options& options) {
  const ExportFormat& format = export_format_of(options.format);
  require_out(options, "a .json for chrome, a .csv for csv");
  Trace trace = load_trace(options.files.front());
  if (!options.schedule.empty()) {
    const std::string name = traced_schedules(trace, options).front();
    keep_only(trace.measured, position_of(trace.measured, name));
    keep_only(trace.predicted, position_of(trace.predicted, name));
  }
  if (options.iteration && !trace.measured.rows.empty())
    keep_iteration(trace.measured, *options.iteration);
  write_new_file(options.out, [&](std::ostream& out) { format.write(trace, {}, out); });
  return written(options, trace);
}

Answer trace_merge_command(const Options& options) {
  require_out(options, "the trace (.h5)");
  const std::filesystem::path run{options.files.front()};
  if (!std::filesystem::is_directory(run))
    fail("{}: cannot be merged (it is no directory). Name the directory of a run.", run.string());
  const Trace trace = merge_run(run);
  write_trace(options.out, trace);
  return written(options, trace);
}

}  // namespace longhaul
