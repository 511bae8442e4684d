#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "harness/profile/link_profile.hpp"

namespace longhaul::harness {

/// The profile beside what was played (`truth`; nothing: not known) for records, and for people.
[[nodiscard]] nlohmann::ordered_json profile_json(const Profile& profile,
                                                  const std::optional<Profile>& truth,
                                                  const Scenario& scenario);
[[nodiscard]] std::string profile_text(const Profile& profile, const std::optional<Profile>& truth,
                                       const Scenario& scenario);

}  // namespace longhaul::harness
