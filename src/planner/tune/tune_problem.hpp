#pragma once

#include <string>

#include "planner/tune/tune.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::planner {

/// What a scenario says of what is tuned: the GPU of each replica, by [[datacenter]] gpu, and the
/// model of [train] preset. Throws Error where one of them is missing, or the GPU's throughput of
/// that model is not known.
[[nodiscard]] TuneProblem tune_problem_of(const Scenario& scenario);

/// A file of probes of the model that the scenario trains. Throws Error where it is of another.
[[nodiscard]] ProbeTable probes_for(const Scenario& scenario, const std::string& file);

/// What the controller of [train.adapt] goes by: g of its probes, times its scale. Where it names
/// none all rates and all batches, up to the paper's 1,024 samples (section 4.3), converge equally
/// fast. Throws Error where the file cannot be used, or where by its scale a loss is reached in no
/// time.
[[nodiscard]] Surrogate surrogate_for(const Scenario& scenario);

}  // namespace longhaul::planner
