#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/listed_enum.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {

/// Why a GPU is idle beside what is filled: the guard at a bubble's end; too short for the prompts
/// that wait, or for any; no request waits; memory of the GPU; a pipeline's other stages; the
/// bubble is open, but what was to start had not heard of it; a rank would not start what it was
/// given; the GPU serves nothing.
#define LONGHAUL_IDLE_CAUSES(X) \
  X(guard, "guard")             \
  X(too_small, "too_small")     \
  X(no_request, "no_request")   \
  X(memory, "memory")           \
  X(skew, "skew") X(signal, "signal") X(declined, "declined") X(no_pipeline, "no_pipeline")
LONGHAUL_LISTED_ENUM(IdleCause, LONGHAUL_IDLE_CAUSES);

/// Idle GPU time of a stretch, by IdleCause. All together: what neither training nor prefills take.
using IdleTimes = std::array<Duration, every<IdleCause>().size()>;

/// When each GPU computes prefills: by GPU, by start, joined where they touch.
struct PrefillSpan {
  Duration start{}, end{};
};
[[nodiscard]] std::vector<std::vector<PrefillSpan>> prefill_spans(
    int gpus, const std::vector<Served>& served, const std::vector<Decision>& decisions);

/// Sorts spans by start and joins those that touch or overlap.
void join_spans(std::vector<PrefillSpan>& spans);

/// A time of a GPU whose idle part has a cause that bubbles and requests do not tell.
struct KnownIdle {
  Duration start{}, end{};
  IdleCause cause = IdleCause::declined;
};

/// Where the times of what is idle are taken from: bubbles of `iterations`, and when GPUs compute
/// prefills in them.
struct IdleInput {
  const IterationBubbles& iteration;
  const std::vector<Served>& served;
  const std::vector<Decision>& decisions;
  std::int64_t iterations = 1;
  bool backlog = false;
  std::vector<std::vector<PrefillSpan>> prefills;  ///< by GPU, by start
  std::vector<std::vector<KnownIdle>> known{};     ///< by GPU, by start; none overlaps the next
};
[[nodiscard]] IdleTimes idle_by_cause(const IdleInput& input);

/// `backlog`: some request always waits, and the bubbles of the stretch are whole, as those of
/// place_backlog(); otherwise they are cut at its begin and end.
[[nodiscard]] IdleTimes idle_by_cause(const IterationBubbles& iteration,
                                      const std::vector<Served>& served,
                                      const std::vector<Decision>& decisions,
                                      std::int64_t iterations, bool backlog);

}  // namespace longhaul::prefill
