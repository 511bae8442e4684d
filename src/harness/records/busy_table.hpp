#pragma once

#include <string>
#include <vector>

#include "harness/session/schedule_session.hpp"

namespace longhaul::harness {

/// For people: links, interfaces and collectives that are held for any time, the busiest of each
/// schedule, predicted and measured. Empty where none is.
[[nodiscard]] std::string busy_table(const std::vector<PipelineMeasurement>& measurements);

}  // namespace longhaul::harness
