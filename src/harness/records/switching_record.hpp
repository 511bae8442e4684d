#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/session/switching_session.hpp"

namespace longhaul::harness {

/// All segments of a run, in the order of the report.
[[nodiscard]] std::vector<PipelineMeasurement> segments_of(
    const std::vector<SwitchingOutcome>& outcomes);

/// Adds the changes between iterations to the record: `switches`; `adaptive` where the run adapts;
/// and the first iteration of each segment of `schedules`.
void add_changes(nlohmann::ordered_json& record, const std::vector<SwitchingOutcome>& outcomes,
                 const PipelineOptions& options);
/// The same for people; nothing where nothing happened.
[[nodiscard]] std::string changes_text(const std::vector<SwitchingOutcome>& outcomes);

}  // namespace longhaul::harness
