#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cli/check/check.hpp"
#include "report/link_load/link_check.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::cli {
namespace {

/// A run that was not merged yet is merged for the check alone.
class MergedForCheck {
public:
  explicit MergedForCheck(const std::filesystem::path& run) {
    std::string name = (std::filesystem::temp_directory_path() / "longhaul-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      fail("no directory {} can be made ({}). Set TMPDIR.", name, std::strerror(errno));
    directory_ = name;
    trace::merge_run_into(run, file());
  }
  ~MergedForCheck() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  MergedForCheck(const MergedForCheck&) = delete;
  MergedForCheck& operator=(const MergedForCheck&) = delete;
  [[nodiscard]] std::filesystem::path file() const { return directory_ / "trace.h5"; }

private:
  std::filesystem::path directory_;
};

void check_file(const std::filesystem::path& file, Finding& finding) {
  std::optional<report::LinkCheck> links;
  finding.problems =
      trace::validate_trace(file, [&](const trace::RunInfo& info) { return &links.emplace(info); });
  if (!finding.problems.empty()) return;
  finding.problems = links->problems();
  finding.json["links"] = links->json();
  if (!finding.problems.empty()) return;
  const trace::TraceOverview overview = trace::overview_of(file);
  finding.summary = fmt::format("valid trace of {}: {} measured and {} predicted ops",
                                overview.creator, overview.measured_rows, overview.predicted_rows);
  for (const std::string& note : overview.notes) finding.details += fmt::format("{}\n", note);
  for (const std::string& note : links->notes()) finding.details += fmt::format("{}\n", note);
  finding.json["notes"] = overview.notes;
  finding.json["measured_rows"] = overview.measured_rows;
  finding.json["predicted_rows"] = overview.predicted_rows;
}

void check_run(const std::filesystem::path& directory, Finding& finding) {
  const std::filesystem::path merged = directory / "trace.h5";
  if (std::filesystem::exists(merged)) return check_file(merged, finding);
  if (!std::filesystem::exists(directory / "run.h5"))
    fail("{}: is no run (it holds neither trace.h5 nor run.h5). Name the directory of a run.",
         directory.string());
  try {
    check_file(MergedForCheck{directory}.file(), finding);
  } catch (const Error& error) {
    if (error.code() == ExitCode::run_failed) throw;  // no room to look: that says nothing of it
    finding.problems = {error.what()};
  }
}

}  // namespace

Finding check_trace(const std::string& file) {
  Finding finding{file, "trace", {}, {}, {}, {}};
  std::filesystem::is_directory(file) ? check_run(file, finding) : check_file(file, finding);
  if (!finding.problems.empty()) finding.summary = "not a valid trace";
  return finding;
}

}  // namespace longhaul::cli
