#pragma once

#include <string>

#include "planner/tune/tune.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::cli {

/// What a scenario says of what is tuned: the GPU of each replica, by [[datacenter]] gpu, and the
/// model of [train] preset. Throws Error where one of them is missing, or the GPU's throughput of
/// that model is not known.
[[nodiscard]] planner::TuneProblem tune_problem_of(const Scenario& scenario);

}  // namespace longhaul::cli
