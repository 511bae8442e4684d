#pragma once

#include "trace/iteration_view.hpp"
#include "trace/report.hpp"

namespace longhaul {

/// attribute_idle() for an iteration that has been looked at already.
[[nodiscard]] IdleTime attribute_idle(const IterationView& view,
                                      std::int64_t activation_budget_bytes);

}  // namespace longhaul
