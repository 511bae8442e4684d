#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/command/commands.hpp"

namespace longhaul::cli {

/// The result of checking one file.
struct Finding {
  std::string file;
  std::string kind;     ///< "scenario", "schedule" or "trace"
  std::string summary;  ///< one line, without the file's name
  std::vector<std::string> problems;
  std::string details;          ///< tables for people
  nlohmann::ordered_json json;  ///< further keys
};

/// Does every device's memory hold what the reference schedule (--schedule, 1f1b by default) keeps?
[[nodiscard]] Finding check_scenario(const std::string& file, const Options& options);
/// Its first violation; with a scenario also shape and memory.
[[nodiscard]] Finding check_schedule(const std::string& file, const Options& options);
/// A trace, or the finished part of a run's directory.
[[nodiscard]] Finding check_trace(const std::string& file);

}  // namespace longhaul::cli
