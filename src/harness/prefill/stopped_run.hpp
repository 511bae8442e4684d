#pragma once

#include <csignal>

#include "harness/prefill/prefill_run.hpp"

namespace longhaul::harness {

/// As of a program that SIGTERM has ended.
inline constexpr auto kDrained = static_cast<ExitCode>(128 + SIGTERM);

/// On rank 0, of a run that SIGTERM has ended before its last pair. Requests that have their places
/// in stretches which were not played are refused (`closed`), as predicted, too; of a backlog they
/// were not offered.
void cut_short(PrefillRun& run, const PrefillSettings& settings);

/// Who asked a planned run of so many stretches with prefill, by id: all of a file; of a backlog
/// those that were refused or had places in them.
[[nodiscard]] std::vector<std::int64_t> offered_to_plan(const PlannedStretches& planned,
                                                        const PrefillSettings& settings,
                                                        std::int64_t stretches);

/// "stopped by SIGTERM after 3 of 20 pairs", with what goes on; on rank 0.
[[nodiscard]] std::string stopped_text(const PrefillRun& run, const PrefillOptions& options,
                                       const PrefillSettings& settings);

}  // namespace longhaul::harness
