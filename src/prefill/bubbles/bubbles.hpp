#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::prefill {

/// A maximal time in which a GPU computes nothing, of an iteration that repeats with its period:
/// `start` lies in it, `end` in it or in the next, never more than a period later. Absent ops (of a
/// GPU that computes nothing at all) are -1.
struct Bubble {
  std::int32_t rank = 0;
  Duration start{}, end{};
  std::int64_t after_op = -1;   ///< whose end is `start`
  std::int64_t before_op = -1;  ///< whose start is `end`, of the next iteration where `end` is
  [[nodiscard]] Duration length() const { return end - start; }
  friend bool operator==(const Bubble&, const Bubble&) = default;
};

/// The bubbles of one schedule.
struct IterationBubbles {
  Duration period{};  ///< the makespan of the iteration
  int gpus = 0;
  Duration busy{};              ///< of all GPUs together, in one period
  std::vector<Bubble> bubbles;  ///< by rank, then by start

  /// Busy time over GPUs x period; 0 where the period is 0.
  [[nodiscard]] double busy_ratio() const;
};

/// The bubbles of ranks 0 to gpus - 1 in one iteration's rows: those of one schedule, from the
/// iteration's start. What a GPU is idle at the end of an iteration and the begin of the next is
/// one bubble. Blocks that overlap on a rank count once.
[[nodiscard]] IterationBubbles find_bubbles(std::span<const TimelineRow> rows, int gpus);

/// The bubbles of iterations that run alone, with nothing before or after them: a bubble around the
/// end of the period is two, one that begins with it and one that ends with it.
[[nodiscard]] IterationBubbles cut_at_ends(IterationBubbles iteration);

/// How much of the idle time lies in bubbles of one class of length.
struct LengthClass {
  Duration below{};  ///< shorter than this, not than the class before; max(): the longest
  std::int64_t bubbles = 0;
  Duration idle{};
};
/// Bubbles shorter than 1, 2, 5, 10, ... ms, up to 10 s, and longer ones; classes without any are
/// left out.
[[nodiscard]] std::vector<LengthClass> idle_by_length(const IterationBubbles& iteration);

}  // namespace longhaul::prefill
