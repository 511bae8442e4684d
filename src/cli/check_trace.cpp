#include <filesystem>

#include "cli/check.hpp"
#include "cli/trace_source.hpp"

namespace longhaul {
namespace {

/// Problems of a run's directory that was not merged yet: merging validates what is finished.
std::vector<std::string> problems_of_run(const std::filesystem::path& directory) {
  const std::filesystem::path merged = directory / "trace.h5";
  if (std::filesystem::exists(merged)) return validate_trace(merged);
  if (!std::filesystem::exists(directory / "run.h5"))
    fail("{}: is no run (it holds neither trace.h5 nor run.h5). Name the directory of a run.",
         directory.string());
  try {
    static_cast<void>(merge_run(directory));
    return {};
  } catch (const Error& error) {
    return {error.what()};
  }
}

}  // namespace

Finding check_trace(const std::string& file) {
  Finding finding{file, "trace", {}, {}, {}, {}};
  finding.problems =
      std::filesystem::is_directory(file) ? problems_of_run(file) : validate_trace(file);
  if (!finding.problems.empty()) {
    finding.summary = "not a valid trace";
    return finding;
  }
  const Trace trace = load_trace(file);
  finding.summary =
      fmt::format("valid trace of {}: {} measured and {} predicted ops", trace.info.creator,
                  trace.measured.rows.size(), trace.predicted.rows.size());
  finding.json["measured_rows"] = trace.measured.rows.size();
  finding.json["predicted_rows"] = trace.predicted.rows.size();
  return finding;
}

}  // namespace longhaul
