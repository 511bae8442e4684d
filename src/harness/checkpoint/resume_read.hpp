#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "harness/session/schedule_session.hpp"

namespace longhaul::harness {

/// An entry of the journal for what the checks of all ranks said of an iteration.
[[nodiscard]] nlohmann::json sums_entry(int position, int iteration,
                                        const engine::IterationResult& sums);
/// The same for the end of a schedule: messages left over, and the first wrong ones by name.
[[nodiscard]] nlohmann::json end_entry(int position, const PipelineMeasurement& measurement);

/// Results of the finished iterations of each schedule: those that follow each other from 0 on,
/// with all their rows in `measured` and their entries in the journal.
[[nodiscard]] std::vector<EarlierIterations> read_earlier(
    const Timeline& measured, const PipelineInput& input,
    const std::vector<nlohmann::json>& journal);

}  // namespace longhaul::harness
