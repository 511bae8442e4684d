#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace longhaul::report {

/// The first fields of a record, about the record itself. Empty ones are left out.
struct RecordHeader {
  std::string benchmark{};  ///< "bench_link"
  std::string numbers{};    ///< "measured" or "simulated"
  std::string creator{};    ///< "longhaul": the record adds the version
  std::optional<std::string>
      command_line{};  ///< with the commit; records about a file have neither
};

/// The first fields of every record, in this order: schema_version, benchmark, numbers, creator,
/// git_commit, command_line.
[[nodiscard]] nlohmann::ordered_json record_header(const RecordHeader& header = {});

/// The versions of what is promised to stay readable (docs/formats.md), for people: a line.
[[nodiscard]] std::string formats_text();

/// Pretty-printed, with a line end.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& json);

/// Throws Error unless `file` does not exist yet and its directory does: to be asked before the
/// work, so that a slip costs no time.
void require_new_file(const std::filesystem::path& file);

/// Creates `file` exclusively and lets `write` fill it. Throws Error where it exists or the disk
/// is full; never leaves a half-written file.
void write_new_file(const std::filesystem::path& file,
                    const std::function<void(std::ostream&)>& write);

/// A command line as a shell takes it back: words with anything but plain characters are quoted.
[[nodiscard]] std::string shell_text(const std::string& program,
                                     std::span<const std::string> arguments);

}  // namespace longhaul::report
