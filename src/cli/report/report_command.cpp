#include <filesystem>

#include <nlohmann/json.hpp>

#include "cli/report/advice_page.hpp"
#include "cli/trace/trace_source.hpp"
#include "report/page/page.hpp"
#include "report/page/reported_run.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

report::RunPage page_of(const Options& options) {
  const std::filesystem::path first = options.files.front();
  if (std::filesystem::exists(first / kAdviceFile)) {
    if (options.files.size() > 1 || !options.schedule.empty())
      fail("report: {} is advice (it stands alone, and its best plan is shown). Leave {} out.",
           first.string(), options.schedule.empty() ? "the other runs" : "--schedule");
    return advice_page(first);
  }
  std::vector<report::ReportedRun> runs;
  for (const std::string& source : options.files)
    runs.push_back(report::reported_run(source, load_trace(source, options)));
  return report::run_page(runs, options.schedule);
}

}  // namespace

Answer report_command(const Options& options) {
  if (options.out.empty()) fail("report: there is no file to write. Give --out report.html.");
  report::require_new_file(options.out);
  const report::RunPage page = page_of(options);
  report::write_new_file(
      options.out, [&](std::ostream& out) { out << report::report_page(page.title, page.data); });
  Answer answer;
  if (options.json) {
    nlohmann::ordered_json json =
        report::record_header({.creator = "longhaul", .command_line = options.command_line});
    json["out"] = options.out;
    json["sentences"] = page.data["sentences"];
    json["schedules"] = page.data["schedules"];
    answer.text = report::json_text(json);
    return answer;
  }
  const auto& sentences = page.data["sentences"];
  for (const auto& sentence : sentences) answer.text += sentence.get<std::string>() + "\n";
  answer.text += fmt::format("wrote {}\n", options.out);
  return answer;
}

}  // namespace longhaul::cli
