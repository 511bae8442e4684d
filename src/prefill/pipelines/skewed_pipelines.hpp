#pragma once

#include "prefill/bubbles/bubbles.hpp"
#include "prefill/pipelines/pipelines.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::prefill {

/// Pipelines of a model with `skewed_for`: of any GPUs of a datacenter, in any order, so that each
/// stage's bubbles follow those of the stage before by its time and a hop for prompts of so many
/// tokens. Together they hold as many of these as a search finds, which begins with the pipelines
/// of equal places, then with drawn ones, and exchanges GPUs for as long as that gains something:
/// never fewer than equal places hold. Each GPU holds one stage at most; k do not divide the GPUs
/// of a datacenter: the rest of them serve nothing. Numbered by the ranks of their stages. Throws
/// Error where no datacenter has k GPUs, and under tensor parallelism.
[[nodiscard]] ServingPipelines skewed_pipelines(const Scenario& scenario, const ServedModel& model,
                                                int cell, const IterationBubbles& iteration);

}  // namespace longhaul::prefill
