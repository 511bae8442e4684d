#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/prefill/planned_stretches.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::harness {

/// What became of a request that a stretch was to answer. Each part of TTFT is measured by itself;
/// they add up to it where each stage begins after the one before it has ended.
struct PlayedRequest {
  std::int64_t request = 0, tokens = 0;
  std::size_t model = 0;
  bool is_done = false;               ///< otherwise a rank declined a stage of it
  Duration ttft{};                    ///< from its scheduled arrival to the end of its last stage
  Duration decision{};                ///< until the controller has said where it goes
  Duration wait{}, compute{}, hop{};  ///< until its first stage begins; in stages; between them
  Duration predicted_ttft{};
};

/// A stretch as it was played, or as it is predicted. Sums over the training GPUs.
struct StretchOutcome {
  Duration wall{};  ///< from the begin of its first iteration to the end of its last
  Duration training{}, prefill{};
  std::int64_t late = 0;                     ///< stages that ended after their deadlines
  std::int64_t blocks_bound_by_prefill = 0;  ///< training's, which waited for one
  Duration delay{};                          ///< by how much these began after they could have
  prefill::LiveTally tally{};                ///< of a live run
  std::vector<PlayedRequest> requests{};
};

/// Of a stretch without prefill: times of all ops, from the first of them on.
[[nodiscard]] StretchOutcome outcome_of_training(const Plan& training, const OpTimes& times);
/// Of one with prefill. What training waited for prefills is counted from when a block was ready
/// and the block before it had ended.
[[nodiscard]] StretchOutcome outcome_of_filled(const PlannedStretches& planned,
                                               const FilledStretch& stretch,
                                               const OpResults& results);

}  // namespace longhaul::harness
