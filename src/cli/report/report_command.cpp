#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text_file.hpp"
#include "cli/report/advice_page.hpp"
#include "cli/trace/trace_source.hpp"
#include "report/page/page.hpp"
#include "report/page/reported_run.hpp"
#include "report/page/train_page.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

/// The record of bench_train in a directory.
std::optional<nlohmann::ordered_json> training_of(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "record.json";
  if (!std::filesystem::is_directory(directory) || !std::filesystem::exists(file))
    return std::nullopt;
  auto record = nlohmann::ordered_json::parse(read_text_file(file), nullptr, false);
  if (!report::is_of_training(record)) return std::nullopt;
  return record;
}

report::RunPage page_of(const Options& options) {
  const std::filesystem::path first = options.files.front();
  if (std::filesystem::exists(first / kAdviceFile)) {
    if (options.files.size() > 1 || !options.schedule.empty())
      fail("report: {} is advice (it stands alone, and its best plan is shown). Leave {} out.",
           first.string(), options.schedule.empty() ? "the other runs" : "--schedule");
    return advice_page(first);
  }
  if (const auto record = training_of(first)) {
    if (options.files.size() > 1 || !options.schedule.empty())
      fail(
          "report: {} is of bench_train (it stands alone, and all its curves are shown). Leave {} "
          "out.",
          first.string(), options.schedule.empty() ? "the other runs" : "--schedule");
    return report::train_page(*record, first.string());
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
