#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "harness/prefill/prefill_run.hpp"

namespace longhaul::harness {

/// record.json of a run: docs/prefill.md.
[[nodiscard]] nlohmann::ordered_json prefill_record(const PlannedStretches& planned,
                                                    const PrefillRun& run,
                                                    const PrefillOptions& options,
                                                    const PrefillSettings& settings,
                                                    const nlohmann::json& environment);

/// The same for people.
[[nodiscard]] std::string prefill_text(const nlohmann::ordered_json& record);

/// Empty where the record holds what it must: each request is answered once, parts of each TTFT add
/// up to it, no message came wrong. Otherwise a line.
[[nodiscard]] std::string why_not_sound(const PrefillRun& run);

}  // namespace longhaul::harness
