#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/session/schedule_session.hpp"

namespace longhaul::harness {

/// Results of a schedule of real layers, for the record.
[[nodiscard]] nlohmann::ordered_json real_json(const RealOutcome& outcome);

/// Loss of the last iteration, for the table.
[[nodiscard]] std::string loss_text(const PipelineMeasurement& measurement);

/// True where predictions use costs that bench_profile measured.
[[nodiscard]] bool costs_are_measured(const PipelineInput& input, const PipelineOptions& options);

/// For people: what computed, how weights were stepped, how many iterations were held against one
/// rank, and what predictions are worth. Empty where blocks were timed.
[[nodiscard]] std::string real_note(const std::vector<PipelineMeasurement>& measurements,
                                    const PipelineInput& input, const PipelineOptions& options);

}  // namespace longhaul::harness
