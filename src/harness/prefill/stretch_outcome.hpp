#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/prefill/planned_stretches.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::harness {

/// What became of a request that a stretch was to answer. Each part of TTFT is measured by itself;
/// they add up to it where each begins after the one before it has ended.
struct PlayedRequest {
  std::int64_t request = 0, tokens = 0;
  std::size_t model = 0;
  bool is_done = false;               ///< otherwise a rank declined a stage, or keys came wrong
  bool came_wrong = false;            ///< some of its keys and values
  bool was_killed = false;            ///< a stage began and did not end
  Duration ttft{};                    ///< from its scheduled arrival to its first token
  Duration decision{};                ///< until the controller has first said where it goes
  Duration wait{}, compute{}, hop{};  ///< until its first stage begins; in stages; between them
  Duration kv{};                      ///< from its last stage until its first token begins
  Duration first_token{};
  Duration predicted_ttft{};
  [[nodiscard]] Duration sum_of_parts() const {
    return decision + wait + compute + hop + kv + first_token;
  }
};

/// Keys and values on their way.
struct PlayedKv {
  std::int64_t slices = 0;
  Bytes bytes{};                    ///< nominal
  std::int64_t messages_bound = 0;  ///< of training, which waited for a slice
  Duration delay{};                 ///< by how much these left after they could have
  PlayedKv& operator+=(const PlayedKv& other);
};

/// A stretch as it was played, or as it is predicted. Sums over the training GPUs.
struct StretchOutcome {
  Duration wall{};  ///< from the begin of its first iteration to the end of its last
  Duration training{}, prefill{};
  /// Requests of which a stage ended after its deadline, or whose TTFT is beyond slo_ttft.
  std::int64_t late = 0;
  std::int64_t blocks_bound_by_prefill = 0;  ///< training's, which waited for one
  Duration delay{};                          ///< by how much these began after they could have
  prefill::IdleTimes idle{};                 ///< what neither training nor prefills took
  prefill::LiveTally tally{};                ///< of a live run
  PlayedKv kv{};
  std::vector<prefill::GpuMemory> memory{};  ///< of GPUs whose capacity is known
  std::vector<PlayedRequest> requests{};
};

/// Of a stretch without prefill: times of all ops, from the first of them on.
[[nodiscard]] StretchOutcome outcome_of_training(const Plan& training, const OpTimes& times);
/// Of one with prefill. What training waited for prefills is counted from when a block was ready
/// and the block before it had ended; what its messages waited for slices of keys and values, from
/// when both sides were ready and the message before it had left, where a slice was the last that
/// held the interface. `wrong`: receives whose message came wrong.
[[nodiscard]] StretchOutcome outcome_of_filled(const PlannedStretches& planned,
                                               const FilledStretch& stretch,
                                               const OpResults& results,
                                               const std::vector<OpId>& wrong = {});

}  // namespace longhaul::harness
