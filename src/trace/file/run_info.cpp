#include "trace/file/run_info.hpp"

#include <array>
#include <cmath>

#include "base/error.hpp"
#include "trace/hdf5/hdf5_types.hpp"

namespace longhaul::hdf5 {
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

RunInfo read_run_info(Id file, std::uint64_t file_bytes, Diagnostics& findings) {
  RunInfo info;
  guarded(findings, [&] {
    const std::int64_t version = read_int_attribute(file, "schema_version");
    if (version < kTraceSchemaVersion)
      fail(
          "schema_version is {}: the file is older than this program, which knows {} and needs "
          "its columns; record it again, or use the program of the git_commit that it names",
          version, kTraceSchemaVersion);
    if (version > kTraceSchemaVersion)
      fail("schema_version is {}: the file is newer than this program, which knows {}", version,
           kTraceSchemaVersion);
  });
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

}  // namespace longhaul::hdf5
