#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/session/switching_session.hpp"

namespace longhaul::bench {

/// All stretches of a run, in the order of the report.
[[nodiscard]] std::vector<PipelineMeasurement> stretches_of(
    const std::vector<ChangingOutcome>& outcomes);

/// What happened between iterations, for the record: `switches`; `adaptive` where the run adapts;
/// and where each stretch of `schedules` begins.
void add_changes(nlohmann::ordered_json& record, const std::vector<ChangingOutcome>& outcomes,
                 const PipelineOptions& options);
/// The same for people; nothing where nothing happened.
[[nodiscard]] std::string changes_text(const std::vector<ChangingOutcome>& outcomes);

}  // namespace longhaul::bench
