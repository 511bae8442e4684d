#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "support/pipeline_run.hpp"

namespace longhaul::bench {

/// Of a schedule of real layers, for the record.
[[nodiscard]] nlohmann::ordered_json real_json(const RealOutcome& outcome);

/// Loss of the last iteration, for the table.
[[nodiscard]] std::string loss_text(const PipelineMeasurement& measurement);

/// For people: what computed, and how many iterations were held against one rank. Empty where
/// blocks were timed.
[[nodiscard]] std::string real_note(const std::vector<PipelineMeasurement>& measurements,
                                    const PipelineInput& input);

}  // namespace longhaul::bench
