#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace longhaul {
struct Scenario;
}

namespace longhaul::harness {

struct PipelineOptions;

/// Throws Error if `directory` holds anything: nothing is overwritten. It need not exist.
void require_free(const std::filesystem::path& directory);

/// Writes a file that must not exist, whole or not at all; makes its directory.
void write_new_file(const std::filesystem::path& file, const std::string& text);

/// File of a run's directory: the request, and the input that rank 0 handed to all ranks, so that a
/// run that goes on plays the same rows without searching again.
inline constexpr const char* kInputFile = "input.json";

/// All that the results of a run depend on: texts of scenario and files, overrides, schedules,
/// options. A run may be gone on with where all of it is equal. Reads the files of --schedule.
[[nodiscard]] nlohmann::json asked_of(const PipelineOptions& options, const Scenario& scenario,
                                      int ranks);

/// The input that rank 0 handed out when the run in `directory` was begun; nullopt: none was begun
/// there. Throws Error that names the difference where that run was asked for something else.
[[nodiscard]] std::optional<nlohmann::json> kept_input(const std::filesystem::path& directory,
                                                       const nlohmann::json& asked);

/// Writes it. Of several runs that begin in one directory one succeeds; Error in the others.
void keep_input(const std::filesystem::path& directory, const nlohmann::json& asked,
                const nlohmann::json& handed);

/// Trace and record are there: nothing is left to run.
[[nodiscard]] bool is_complete(const std::filesystem::path& directory);

}  // namespace longhaul::harness
