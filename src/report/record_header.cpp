#include "report/record_header.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/version.hpp"

namespace longhaul::report {
namespace {

constexpr int kRecordSchemaVersion = 1;

}  // namespace

nlohmann::ordered_json record_header(const RecordHeader& header) {
  nlohmann::ordered_json record;
  record["schema_version"] = kRecordSchemaVersion;
  if (!header.benchmark.empty()) record["benchmark"] = header.benchmark;
  if (!header.numbers.empty()) record["numbers"] = header.numbers;
  if (!header.creator.empty()) record["creator"] = fmt::format("{} {}", header.creator, version());
  if (header.command_line) {
    record["git_commit"] = git_commit();
    record["command_line"] = *header.command_line;
  }
  return record;
}

}  // namespace longhaul::report
