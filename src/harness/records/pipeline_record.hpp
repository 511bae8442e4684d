#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/session/schedule_session.hpp"

namespace longhaul::harness {

/// The record that feeds table and JSON (docs/runtime.md).
[[nodiscard]] nlohmann::ordered_json pipeline_record(
    const std::vector<PipelineMeasurement>& measurements, const PipelineInput& input,
    const PipelineOptions& options, const nlohmann::json& environment);

/// For people: predicted against measured, and where the idle time went.
[[nodiscard]] std::string pipeline_table(const std::vector<PipelineMeasurement>& measurements,
                                         const PipelineInput& input,
                                         const PipelineOptions& options);

}  // namespace longhaul::harness
