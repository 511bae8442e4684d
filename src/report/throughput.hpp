#pragma once

#include <cstdint>
#include <optional>

#include "scenario/scenario.hpp"

namespace longhaul {

/// Tokens of one iteration over its makespan; nullopt without a model.
[[nodiscard]] std::optional<double> tokens_per_second(const Scenario& scenario,
                                                      std::int64_t makespan_ns);
/// FLOPs that the model needs (forward and twice that backward, no recomputation) over what all
/// GPUs could do at their peak in the makespan; nullopt where model or peak is unknown.
[[nodiscard]] std::optional<double> model_flops_utilization(const Scenario& scenario,
                                                            std::int64_t makespan_ns);

}  // namespace longhaul
