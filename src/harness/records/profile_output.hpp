#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "harness/environment/shared_options.hpp"
#include "harness/profile/model_profile.hpp"

namespace longhaul::harness {

/// Options of bench_profile, as typed.
struct ProfileSettings : SharedOptions {
  std::string scenario;
  std::string schedule = "1f1b";
  int samples = 20;
  std::optional<int> max_samples;
};

/// Input of the measurements, the same on all ranks.
struct ProfileInput {
  Scenario scenario;
  Schedule schedule;
  StoppingRule rule;
};

/// Collective. Rank 0 reads the scenario; costs that it includes are those that are to be measured.
[[nodiscard]] ProfileInput prepare_profile(engine::Ranks& ranks, const ProfileSettings& options);

/// On rank 0: shows and writes what was measured; how many things are wrong with it.
[[nodiscard]] std::size_t finish_profile(const ModelProfile& profile, const ProfileInput& input,
                                         const ProfileSettings& options, int ranks,
                                         const nlohmann::json& environment);

}  // namespace longhaul::harness
