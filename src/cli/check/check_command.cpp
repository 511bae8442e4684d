#include <algorithm>
#include <filesystem>

#include "cli/check/check.hpp"
#include "cli/command/commands.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

bool any_ends_with(const std::vector<std::string>& files, std::string_view ending) {
  return std::ranges::any_of(files, [&](const auto& file) { return file.ends_with(ending); });
}

/// Scenarios are overridden where they are checked, and where schedules are held against one.
void refuse_idle_overrides(const Options& options) {
  if (options.overrides.empty() || any_ends_with(options.files, ".toml")) return;
  if (!options.scenario.empty() && any_ends_with(options.files, ".csv")) return;
  fail("--set {}: there is no scenario to override. Name one with --scenario.",
       options.overrides.front());
}

Finding check_file(const std::string& file, const Options& options) {
  std::error_code ignored;
  const std::filesystem::path path{file};
  if (!std::filesystem::exists(path, ignored))
    fail("{}: cannot be read (there is no such file). Check the path.", file);
  if (std::filesystem::is_directory(path, ignored)) return check_trace(file);
  if (path.extension() == ".toml") return check_scenario(file, options);
  if (path.extension() == ".csv") return check_schedule(file, options);
  if (path.extension() == ".h5") return check_trace(file);
  fail(
      "{}: no kind of file that can be checked (known by their names: scenario .toml, schedule "
      ".csv, trace .h5, run directory). Name one of these.",
      file);
}

std::string text_of(const Finding& finding) {
  std::string text = fmt::format("{}: {}\n", finding.file, finding.summary);
  for (const std::string& problem : finding.problems) text += fmt::format("  {}\n", problem);
  if (!finding.details.empty()) text += '\n' + finding.details;
  return text;
}

ordered_json to_json(const Finding& finding) {
  ordered_json json = finding.json;
  json["file"] = finding.file;
  json["kind"] = finding.kind;
  json["ok"] = finding.problems.empty();
  json["problems"] = finding.problems;
  return json;
}

/// Of several files each is reported: one that cannot be read leaves the others to be checked.
Finding check_one_of(const std::string& file, const Options& options, ExitCode& code) {
  try {
    Finding finding = check_file(file, options);
    if (!finding.problems.empty()) code = std::max(code, ExitCode::answer_is_no);
    return finding;
  } catch (const Error& error) {
    if (options.files.size() == 1) throw;
    code = std::max(code, error.code());
    Finding finding;
    finding.file = file;
    finding.kind = "unknown";
    finding.summary = "cannot be checked";
    finding.problems.emplace_back(error.what());
    finding.json = ordered_json::object();
    return finding;
  }
}

}  // namespace

Answer check_command(const Options& options) {
  refuse_idle_overrides(options);
  Answer answer;
  ordered_json json =
      report::record_header({.creator = "longhaul", .command_line = options.command_line});
  json["files"] = ordered_json::array();
  for (const std::string& file : options.files) {
    const Finding finding = check_one_of(file, options, answer.code);
    if (!answer.text.empty()) answer.text += '\n';
    answer.text += text_of(finding);
    json["files"].push_back(to_json(finding));
  }
  if (options.json) answer.text = report::json_text(json);
  return answer;
}

}  // namespace longhaul::cli
