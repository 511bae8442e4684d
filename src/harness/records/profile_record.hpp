#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/profile/costs_text.hpp"
#include "harness/profile/model_profile.hpp"

namespace longhaul::harness {

/// Errors of a profile, in words; empty: none. FLOPs of a layer's blocks must be those of
/// docs/scenario.md, the costs file must read as it was written, nothing may be left in memory.
[[nodiscard]] std::vector<std::string> profile_problems(const ModelProfile& profile,
                                                        const Scenario& scenario,
                                                        const std::string& costs);

/// The record's measurements: of devices, of parts, of the message.
[[nodiscard]] nlohmann::ordered_json profile_json(const ModelProfile& profile);

/// For people.
[[nodiscard]] std::string profile_table(const ModelProfile& profile, int ranks);

}  // namespace longhaul::harness
