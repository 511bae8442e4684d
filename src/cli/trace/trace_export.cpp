#include <array>

#include <nlohmann/json.hpp>

#include "base/suggest.hpp"
#include "cli/command/commands.hpp"
#include "cli/trace/trace_source.hpp"
#include "plan/rewrite/timeline_granularity.hpp"
#include "report/granularity.hpp"
#include "report/record_file.hpp"
#include "trace/export/export.hpp"

namespace longhaul::cli {
namespace {

using Export = void (*)(const trace::Trace&, const trace::Selection&, std::ostream&);

struct ExportFormat {
  const char* name;
  Export write;
};
constexpr std::array kTraceFormats{ExportFormat{"chrome", trace::export_chrome},
                                   ExportFormat{"csv", trace::export_csv},
                                   ExportFormat{"memory", trace::export_memory}};

const ExportFormat& export_format_of(const std::string& text) {
  if (text.empty()) return kTraceFormats.front();
  std::vector<std::string> known;
  for (const ExportFormat& format : kTraceFormats) {
    if (text == format.name) return format;
    known.emplace_back(format.name);
  }
  fail("--format: unknown format \"{}\". {}", text, suggestion(text, known));
}

void require_out(const Options& options, const char* what) {
  if (options.out.empty()) fail("--out is missing (the command writes a file). Name {}.", what);
  report::require_new_file(options.out);
}

/// Joins the operators of blocks, or cuts blocks into theirs.
void set_granularity(Granularity granularity, const std::string& source, trace::Trace& trace) {
  for (Timeline* const timeline : {&trace.predicted, &trace.measured}) {
    if (timeline->rows.empty()) continue;
    *timeline =
        granularity == Granularity::blocks
            ? plan::folded(*timeline).or_throw()
            : plan::unfolded(*timeline, scenario_of_trace(trace, source), granularity).or_throw();
  }
}

std::string left_out_text(const trace::MergedRows& rows) {
  if (rows.iterations_left_out == 0) return "";
  return fmt::format("{} finished iterations are left out (a segment of each is damaged)\n",
                     rows.iterations_left_out);
}

Answer written(const Options& options, const trace::MergedRows& rows) {
  if (!options.json)
    return {fmt::format("wrote {}: {} measured and {} predicted ops\n{}", options.out,
                        rows.measured, rows.predicted, left_out_text(rows))};
  nlohmann::ordered_json json = report::record_header();
  json["trace"] = options.files.front();
  json["out"] = options.out;
  json["measured_rows"] = rows.measured;
  json["iterations_left_out"] = rows.iterations_left_out;
  json["predicted_rows"] = rows.predicted;
  return {report::json_text(json)};
}

}  // namespace

Answer trace_export_command(const Options& options) {
  const ExportFormat& format = export_format_of(options.format);
  require_out(options, "a .json for chrome, a .csv for csv and memory");
  trace::Trace trace = load_trace(options.files.front(), options);
  const std::vector<std::string> schedules = traced_schedules(trace, options);
  require_iteration(trace, schedules, options);
  if (!options.granularity.empty())
    set_granularity(report::granularity_of(options.granularity), options.files.front(), trace);
  trace::Selection selection;
  if (!options.schedule.empty()) selection.schedule = schedules.front();
  selection.iteration = options.iteration;
  report::write_new_file(options.out,
                         [&](std::ostream& out) { format.write(trace, selection, out); });
  const auto [predicted, measured] = trace::sources_of(trace);
  return written(options,
                 {trace::count_rows(measured, selection), trace::count_rows(predicted, selection)});
}

Answer trace_merge_command(const Options& options) {
  require_out(options, "the trace (.h5)");
  const std::filesystem::path run{options.files.front()};
  if (!std::filesystem::is_directory(run))
    fail("{}: cannot be merged (it is no directory). Name the directory of a run.", run.string());
  return written(options, trace::merge_run_into(run, options.out));
}

}  // namespace longhaul::cli
