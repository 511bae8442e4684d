#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <set>
#include <vector>

#include "prefill/bubbles.hpp"

namespace longhaul::prefill {

/// Where the earliest policy puts whole prompts on pipelines of one GPU, for many GPUs: the same
/// answers as Controller's search over all pipelines, ties to the lowest. Bubbles come into being
/// as they open, at a few nanoseconds each; those that nothing is placed in cost nothing else.
class GapIndex {
public:
  /// Pipeline i is GPU ranks[i]. Gaps shorter than `least` are not kept.
  GapIndex(const IterationBubbles& iteration, const std::vector<std::int32_t>& ranks,
           Duration guard, Duration least);

  struct Place {
    std::size_t pipeline = 0;
    Duration start{};
  };
  /// Places a prompt that arrives then; arrivals must not go back. nullopt: no bubble is so long.
  [[nodiscard]] std::optional<Place> place(Duration arrival, Duration length);
  /// Bubbles that have opened.
  [[nodiscard]] std::int64_t opened() const { return opened_; }
  /// Lets all bubbles open that begin by `now`, as place() does.
  void advance(Duration now);

private:
  /// A bubble of the iteration, without its guard.
  struct Opening {
    Duration start{}, length{};
    std::uint32_t pipeline = 0;
    std::int64_t free_from = 0;  ///< the first iteration in which nothing was placed in it
  };
  /// What is left of a bubble after a prompt that starts later than now.
  struct Remainder {
    Duration start{};
    std::uint32_t pipeline = 0;
    Duration end{};
    friend auto operator<=>(const Remainder&, const Remainder&) = default;
  };
  static constexpr std::size_t kGroup = 64;

  void open(std::uint32_t pipeline, Duration end);
  [[nodiscard]] std::optional<std::size_t> first_open(Duration until);
  [[nodiscard]] std::optional<std::size_t> first_in_group(std::size_t group, Duration until);
  [[nodiscard]] std::optional<Place> place_later(Duration length);
  void keep_rest(std::uint32_t pipeline, Duration start, Duration end);

  Duration period_, least_, longest_{};
  std::vector<Opening> openings_;           ///< by start, then pipeline
  std::vector<Duration> longest_of_group_;  ///< of kGroup openings
  std::size_t next_ = 0;                    ///< opening
  std::int64_t iteration_ = 0;              ///< of it
  std::vector<Duration> open_until_;        ///< by pipeline: of the gap that is open now
  std::vector<Duration> group_until_;       ///< at least the latest of kGroup pipelines
  std::set<Remainder> remainders_;          ///< that begin later than now
  std::int64_t opened_ = 0;
};

}  // namespace longhaul::prefill
