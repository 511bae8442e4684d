#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace longhaul::harness {

struct PipelineInput;
struct PipelineMeasurement;
struct PipelineOptions;

/// For the record: `weather` ("none", "played", or why it was not) and `weather_of_links`, what
/// those do over time that vary, as played.
void add_weather(nlohmann::ordered_json& record,
                 const std::vector<PipelineMeasurement>& measurements, const PipelineInput& input,
                 const PipelineOptions& options);
/// Weather of one schedule, for its record; null where there was none.
[[nodiscard]] nlohmann::ordered_json weather_json(const PipelineMeasurement& m);
/// Weather of all schedules, for the environment of the trace: begin and prediction of each
/// iteration. Null where there was none.
[[nodiscard]] nlohmann::json weather_environment(
    const std::vector<PipelineMeasurement>& measurements);

/// For people: predictions in the weather that each iteration met, and how far measurements are
/// from them; or that it was not played. Nothing where there was none.
[[nodiscard]] std::string weather_table(const std::vector<PipelineMeasurement>& measurements,
                                        const PipelineInput& input, const PipelineOptions& options);

}  // namespace longhaul::harness
