#pragma once

#include <vector>

#include "harness/checkpoint/resume.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/session/switching_session.hpp"

namespace longhaul::harness {

/// Collective: all schedules of the input, one after the other, after what `directory` has of
/// them.
[[nodiscard]] std::vector<SwitchingOutcome> run_schedules(
    engine::Ranks& ranks, const PipelineInput& input, const PipelineOptions& options,
    const engine::EngineOptions& engine, const AdaptOptions& adapt, Environment& environment,
    RunDirectory& directory);

}  // namespace longhaul::harness
