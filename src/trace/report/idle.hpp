#pragma once

#include "trace/report/report.hpp"
#include "trace/timeline/iteration_view.hpp"

namespace longhaul {

/// attribute_idle() for an iteration that has been looked at already.
[[nodiscard]] IdleTime attribute_idle(const IterationView& view,
                                      std::int64_t activation_budget_bytes);

}  // namespace longhaul
