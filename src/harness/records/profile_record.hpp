#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  std::string collectives;  ///< sizes, as listed_sizes() takes them; empty: by the model; "none"
  bool tasks = false;       ///< of operators, by CUPTI
};

/// Input of the measurements, the same on all ranks.
struct ProfileInput {
  Scenario scenario;
  Schedule schedule;
  StoppingRule rule;
};

/// The collectives to be measured over so many ranks: none with one rank, on a GPU (their numbers
/// would lie in the memory of the host) or where the options say so. Throws Error on sizes that
/// cannot be played.
[[nodiscard]] std::vector<plan::Collective> collectives_to_profile(const ProfileSettings& options,
                                                                   Bytes message, int ranks);

/// Collective. Rank 0 reads the scenario; costs that it includes are those that are to be measured.
[[nodiscard]] ProfileInput prepare_profile(engine::Ranks& ranks, const ProfileSettings& options);

/// Collective. On rank 0 of a profile that is to have tasks: the trace. Throws Error on every rank
/// where tasks cannot be traced, before anything is measured.
[[nodiscard]] std::unique_ptr<cuda::TaskTrace> prepare_trace(engine::Ranks& ranks,
                                                             const ProfileSettings& options);

/// On rank 0: shows and writes what was measured; how many things are wrong with it.
[[nodiscard]] std::size_t finish_profile(const ModelProfile& profile, const ProfileInput& input,
                                         const ProfileSettings& options, const engine::Ranks& ranks,
                                         const nlohmann::json& environment);

/// Errors of a profile, in words; empty: none. FLOPs of a layer's blocks must be those of
/// docs/scenario.md, the costs file must read as it was written, nothing may be left in memory.
[[nodiscard]] std::vector<std::string> profile_problems(const ModelProfile& profile,
                                                        const Scenario& scenario,
                                                        const std::string& costs);

/// The record's measurements: of devices, of parts, of the message.
[[nodiscard]] nlohmann::ordered_json profile_json(const ModelProfile& profile);

/// What the tasks of operators come to, of a profile that has them: the record's "tasks", and for
/// people; empty where it has none.
[[nodiscard]] nlohmann::ordered_json tasks_json(const ModelProfile& profile);
[[nodiscard]] std::string tasks_text(const ModelProfile& profile);

/// For people.
[[nodiscard]] std::string profile_table(const ModelProfile& profile, int ranks);

}  // namespace longhaul::harness
