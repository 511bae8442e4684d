#include "trace/file/trace_reader.hpp"

#include <array>
#include <cmath>

#include "base/error.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/validate/check_rows.hpp"

namespace longhaul::trace::hdf5 {

namespace {

struct TextAttribute {
  const char* name;
  std::string RunInfo::*member;
};
constexpr std::array kTexts{TextAttribute{"creator", &RunInfo::creator},
                            TextAttribute{"git_commit", &RunInfo::git_commit},
                            TextAttribute{"command_line", &RunInfo::command_line},
                            TextAttribute{"scenario", &RunInfo::scenario},
                            TextAttribute{"environment", &RunInfo::environment}};

template <typename Read>
void guarded(Diagnostics& findings, Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    findings.add("root attributes", fmt::format("{} (not a trace of this schema).", error.what()));
  }
}

}  // namespace

void write_run_info(Id file, const RunInfo& info) {
  write_attribute(file, "schema_version", std::int64_t{kTraceSchemaVersion});
  for (const TextAttribute& text : kTexts) write_attribute(file, text.name, info.*text.member);
  write_attribute(file, "time_scale", info.time_scale);
  write_attribute(file, "activation_budget_bytes", info.activation_budget_bytes);
}

std::int64_t read_schema(Id file) {
  const std::int64_t version = read_int_attribute(file, "schema_version");
  if (version < kOldestTraceSchema)
    fail(
        "schema_version is {}: the file is older than this program, which knows {} to {} and needs "
        "their columns; record it again, or use the program of the git_commit that it names",
        version, kOldestTraceSchema, kTraceSchemaVersion);
  if (version > kTraceSchemaVersion)
    fail("schema_version is {}: the file is newer than this program, which knows {} to {}", version,
         kOldestTraceSchema, kTraceSchemaVersion);
  return version;
}

RunInfo read_run_info(Id file, std::uint64_t file_bytes, Diagnostics& findings) {
  RunInfo info;
  for (const TextAttribute& text : kTexts) {
    guarded(findings,
            [&] { info.*text.member = read_text_attribute(file, text.name, file_bytes); });
  }
  guarded(findings, [&] {
    info.time_scale = read_real_attribute(file, "time_scale");
    if (!std::isfinite(info.time_scale) || info.time_scale <= 0)
      fail("time_scale is {}, which no run has", info.time_scale);
  });
  guarded(findings, [&] {
    info.activation_budget_bytes = read_int_attribute(file, "activation_budget_bytes");
    if (info.activation_budget_bytes < 0)
      fail("activation_budget_bytes is {}, below 0", info.activation_budget_bytes);
  });
  return info;
}

TraceReader::TraceReader(const std::filesystem::path& file, Diagnostics& findings) {
  try {
    file_.emplace(open_file(file));
    const std::uint64_t file_bytes = size_of_file(file);
    std::int64_t schema = kTraceSchemaVersion;
    guarded(findings, [&] { schema = read_schema(file_->get()); });
    info_ = read_run_info(file_->get(), file_bytes, findings);
    const TimelineReader::Format format{schema};
    measured_.emplace(file_->get(), "measured", format, file_bytes, findings);
    predicted_.emplace(file_->get(), "predicted", format, file_bytes, findings);
  } catch (const Error& error) {
    findings.add("file", fmt::format("it cannot be opened ({}).", error.what()));
  }
}

void check_groups(const TraceReader& reader, Diagnostics& findings, RowVisitor* visitor) {
  try {
    Diagnostics of_rows;
    RowsInFile predicted{reader.predicted()};
    check_rows(predicted, "predicted", 0, of_rows, kSortBytes, visitor);
    RowsInFile measured{reader.measured()};
    check_rows(measured, "measured", measured_slack_ns(reader.info().environment), of_rows,
               kSortBytes, visitor);
    findings.append(of_rows);
  } catch (const Error&) {
    reader.measured().find_damage(findings);
    reader.predicted().find_damage(findings);
    if (findings.empty()) throw;  // it is not the file
  }
}

void require_none(const std::filesystem::path& file, const Diagnostics& findings) {
  if (findings.empty()) return;
  const std::vector<std::string> texts = findings.texts();
  const std::string more =
      texts.size() > 1 ? fmt::format(" And {} more findings.", texts.size() - 1) : "";
  fail("{} is no valid trace: {}{} See all with `longhaul check`.", file.string(), texts.front(),
       more);
}

}  // namespace longhaul::trace::hdf5
