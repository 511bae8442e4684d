#include "report/record_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/version.hpp"
#include "trace/file/trace_file.hpp"
#include "trace/hdf5/new_file.hpp"

namespace longhaul::report {
namespace {

constexpr int kRecordSchemaVersion = 1;

std::string reason() { return std::strerror(errno); }

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+%@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
  return text + '\'';
}

}  // namespace

std::string formats_text() {
  return fmt::format(
      "formats 1.0: command line, scenario, schedule 1, record {}, trace {} (reads {} to {})\n",
      kRecordSchemaVersion, trace::kTraceSchemaVersion, trace::kOldestTraceSchema,
      trace::kTraceSchemaVersion);
}

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

std::string json_text(const nlohmann::ordered_json& json) {
  // File names are bytes, JSON is UTF-8: what is neither is replaced, not refused.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

void require_new_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(file, ignored)))
    fail(
        "{}: not written (it exists, and results are never overwritten). Name another file or "
        "remove it.",
        file.string());
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(directory, ignored))
    fail("{}: cannot be created (there is no directory {}). Make it first.", file.string(),
         directory.string());
}

void write_new_file(const std::filesystem::path& file,
                    const std::function<void(std::ostream&)>& write) {
  trace::NewFile target{file};
  errno = 0;
  std::ofstream out{target.temporary(), std::ios::binary};
  write(out);
  out.close();
  if (!out)
    throw Error{fmt::format("{}: not written ({}). Check the disk.", file.string(), reason()),
                ExitCode::run_failed};
  target.publish();
}

std::string shell_text(const std::string& program, std::span<const std::string> arguments) {
  std::string text = quoted(program);
  for (const std::string& word : arguments) text += ' ' + quoted(word);
  return text;
}

}  // namespace longhaul::report
