#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "prefill/bubbles/bubbles.hpp"

namespace longhaul::prefill {

/// Which iterations may be filled.
struct FillRange {
  bool from_zero = true;  ///< a bubble around the begin of iteration 0 is cut there; else unused
  std::int64_t iterations = std::int64_t{1} << 40;
  bool apart = false;  ///< something else runs between them: no pass goes over the end of one
};

/// A time in which a GPU is idle, inside one bubble.
struct FreeGap {
  Duration start{}, end{};
  bool ends_bubble = true;  ///< its end is the bubble's, where a guard is kept
};

/// A gap of which a part was taken, and what is left of it.
struct SplitGap {
  FreeGap whole;
  std::optional<FreeGap> before{}, after{};
};

/// When each GPU is free, over many iterations: its bubbles, less what was placed in them. Bubbles
/// come into being as they are asked for; what lies before forget() goes.
class FreeTime {
public:
  /// Gaps shorter than `least` are not kept: no request needs less.
  FreeTime(const IterationBubbles& iteration, FillRange range, Duration least);

  /// The earliest time of at least `from` and at most `limit` from which on GPU `rank` is free for
  /// `length`, inside one bubble less `guard` at its end; nullopt: none. limit must be finite.
  [[nodiscard]] std::optional<Duration> earliest(std::int32_t rank, Duration from, Duration length,
                                                 Duration guard, Duration limit);
  /// From the time of an earliest(): when that gap ends, less the guard where the bubble ends too.
  [[nodiscard]] Duration gap_end(std::int32_t rank, Duration start, Duration guard) const;
  /// No call asks before this time any more; it does not go back. A GPU's gaps go when it is asked
  /// for next: GPUs that are not cost nothing.
  void forget(Duration before) { forgotten_ = std::max(forgotten_, before); }
  /// A lower bound on earliest() of any length: where the first gap begins.
  [[nodiscard]] Duration first_free(std::int32_t rank) const {
    return first_free_[static_cast<std::size_t>(rank)];
  }
  /// Takes a time that earliest() gave; nullopt: it is empty.
  std::optional<SplitGap> take(std::int32_t rank, Duration start, Duration length);

  [[nodiscard]] Duration period() const { return period_; }
  [[nodiscard]] bool is_apart() const { return range_.apart; }
  /// Where a pass of [start, end) goes over the end of an iteration that it must not leave: that
  /// end, from which on it is to be looked for again. Otherwise `start`.
  [[nodiscard]] Duration inside_iteration(Duration start, Duration end) const {
    if (!range_.apart || period_ <= Duration{}) return start;
    const Duration next = period_ * (start / period_ + 1);
    return end > next ? next : start;
  }
  /// The end of all that was placed.
  [[nodiscard]] Duration last_end() const { return last_end_; }

private:
  struct Gpu {
    std::vector<Bubble> bubbles;
    std::vector<FreeGap> gaps;  ///< from `head` on, by start
    std::size_t head = 0;
    std::int64_t iteration = 0;  ///< whose bubbles are added next
  };

  [[nodiscard]] bool add_iteration(Gpu& gpu) const;
  void drop_forgotten(Gpu& gpu) const;
  void set_first_free(std::size_t rank);

  Duration period_, least_, last_end_{}, forgotten_{};
  FillRange range_;
  std::vector<Gpu> gpus_;
  std::vector<Duration> first_free_;
};

}  // namespace longhaul::prefill
