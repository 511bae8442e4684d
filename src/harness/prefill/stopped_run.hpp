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

/// "stopped by SIGTERM after 3 of 20 pairs", with what goes on; on rank 0.
[[nodiscard]] std::string stopped_text(const PrefillRun& run, const PrefillOptions& options,
                                       const PrefillSettings& settings);

}  // namespace longhaul::harness
