#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "report/page/reported_run.hpp"

namespace longhaul::report {

/// Is it the record of bench_train's curves?
[[nodiscard]] bool is_of_training(const nlohmann::ordered_json& record);

/// The page of that record, which has no timeline: five sentences, validation over time or updates
/// and a table of its curves. `name` is what people call the run. Throws Error where the record is
/// damaged or has no curve.
[[nodiscard]] RunPage train_page(const nlohmann::ordered_json& record, const std::string& name);

/// Writes `directory`/report.html of a record that was just written there, as write_page_of_run().
[[nodiscard]] std::string write_page_of_training(const std::filesystem::path& directory,
                                                 const nlohmann::ordered_json& record);

}  // namespace longhaul::report
