#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/checkpoint/resume.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/records/switching_record.hpp"

namespace longhaul::bench {

/// Of the trace: who made it, of which scenario.
[[nodiscard]] RunInfo info_of(const PipelineInput& input, const PipelineOptions& options,
                              const nlohmann::json& environment);

/// A trace that is read on its own says what was measured, too. Nothing but on rank 0.
[[nodiscard]] nlohmann::json described(nlohmann::json environment, const PipelineOptions& options,
                                       const TransportChoice& transport);

/// Where rows go; empty: nowhere.
[[nodiscard]] std::filesystem::path traced_directory(const PipelineOptions& options);

/// On rank 0: prints tables or the record, and writes the record and the merged trace.
void conclude(const std::vector<ChangingOutcome>& outcomes, const PipelineInput& input,
              const PipelineOptions& options, nlohmann::json environment, RunDirectory& directory,
              const std::vector<RankClock>& clocks);

}  // namespace longhaul::bench
