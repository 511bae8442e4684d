#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "prefill/bounds.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {

/// Shares of GPUs x wall time of a stretch of whole iterations.
struct Utilisation {
  double training = 0;
  double prefill = 0;
  double total = 0;
  /// Training, and of prefill the time of its FLOPs at the highest rate that the profile reaches;
  /// nullopt where a served model has no dimensions.
  std::optional<double> useful{};
};

/// How many prompts of a class of length were offered, answered and refused.
struct PromptClass {
  std::int64_t below = std::numeric_limits<std::int64_t>::max();  ///< tokens; max(): the longest
  std::int64_t offered = 0, done = 0, refused = 0;
};

/// Of what was answered: smallest times that so many do not exceed.
struct TimePercentiles {
  Duration p50{}, p90{}, p99{}, max{};
};

/// What became of the requests, and of the GPUs' time.
struct Outcome {
  std::int64_t iterations = 0;  ///< of the stretch
  Utilisation utilisation;
  std::int64_t offered = 0, done = 0, tokens_served = 0;
  std::array<std::int64_t, every<RefusalReason>().size()> refused{};
  std::vector<PromptClass> by_length;     ///< without those that no request is of
  std::optional<TimePercentiles> ttft{};  ///< from arrival to the prefill's end; nullopt: none
  double wait_ns = 0, compute_ns = 0, hop_ns = 0;  ///< means over `done`: parts of TTFT
};

/// `iterations`: of a backlog's stretch; nullopt, an open loop: as many as it takes until the last
/// request has arrived and the last prefill has ended.
[[nodiscard]] Outcome summarize_decisions(const IterationBubbles& iteration,
                                          const std::vector<Served>& served,
                                          const std::vector<Decision>& decisions,
                                          std::optional<std::int64_t> iterations);

}  // namespace longhaul::prefill
