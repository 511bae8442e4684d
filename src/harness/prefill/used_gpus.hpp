#pragma once

#include <nlohmann/json.hpp>

#include "harness/prefill/prefill_run.hpp"

namespace longhaul::harness {

// What of the GPUs' time and memory was used, as record.json has it (docs/prefill.md).

/// Shares of GPUs x wall time of all stretches with prefill, measured, with the bounds that hold
/// for what was played: those of the plan alone where times are its own.
[[nodiscard]] nlohmann::ordered_json utilisation_json(const PlannedStretches& planned,
                                                      const PrefillRun& run,
                                                      const PrefillSettings& settings);
/// The same shares as predicted.
[[nodiscard]] nlohmann::ordered_json predicted_utilisation_json(const PlannedStretches& planned,
                                                                const PrefillRun& run);
/// GPU time that neither training nor prefills took in those stretches, by cause (ns), as measured
/// or as predicted.
[[nodiscard]] nlohmann::ordered_json idle_json(const PrefillRun& run,
                                               StretchOutcome StretchPair::*side);
/// What the run's prompts are worth beside GPUs of their own, in $ of time as the scenario has it;
/// training's delay is that of whole pairs. null: GPUs have no price, or nothing was answered.
[[nodiscard]] nlohmann::ordered_json cost_json(const PlannedStretches& planned,
                                               const PrefillRun& run);
/// The most that each GPU held in all stretches (bytes), as measured and as predicted.
[[nodiscard]] nlohmann::ordered_json memory_json(const PrefillRun& run);

}  // namespace longhaul::harness
