#pragma once

#include <filesystem>

namespace longhaul::testing {

/// The scenarios of benchmarks/scenarios.
inline const std::filesystem::path kShippedScenarios =
    std::filesystem::path{LONGHAUL_SOURCE_DIR} / "benchmarks" / "scenarios";

}  // namespace longhaul::testing
