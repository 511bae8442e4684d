#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "prefill/bubbles/bubbles.hpp"
#include "prefill/bubbles/free_time.hpp"
#include "prefill/pipelines/pipelines.hpp"

namespace longhaul::prefill {

/// A gap of the GPU of a pipeline's first stage: idle, inside one bubble, without the bubble's
/// guard.
struct PipelineGap {
  Duration start{}, end{};
  std::uint32_t pipeline = 0;  ///< index into ServingPipelines::pipelines
  [[nodiscard]] Duration length() const { return end - start; }
  friend bool operator==(const PipelineGap&, const PipelineGap&) = default;
};

/// Which of the gaps that start a prompt equally early comes first: the lowest pipeline's, or the
/// one that ends first (then the lowest pipeline's).
enum class GapOrder { pipeline, end };

[[nodiscard]] bool comes_before(const PipelineGap& a, const PipelineGap& b, GapOrder order);

/// Gaps that begin later than now. Bubbles repeat with the period, so that nothing is kept of an
/// iteration in which nothing was taken. Of the others: the openings of bubbles, in order, in
/// groups of 64, a bit for each that is whole no more, the parts that are left of those, and the
/// longest gap of each group; a search looks into groups that have one long enough.
class LaterGaps {
public:
  /// Gaps of iteration 0, how many iterations there are, and a time that no gap exceeds: what is
  /// left of a bubble whose end was taken has no guard. Precondition: period > 0.
  LaterGaps(Duration period, std::int64_t iterations, std::vector<PipelineGap> openings,
            Duration most, GapOrder order);

  void insert(const PipelineGap& gap);
  void remove(const PipelineGap& gap);
  /// The first gap in the order after `gap` that is so long and begins by `limit`. Precondition:
  /// gap.start is at least the latest advance().
  [[nodiscard]] std::optional<PipelineGap> first_after(const PipelineGap& gap, Duration length,
                                                       Duration limit) const;
  /// Hands over the gaps that begin by `now`, but for those that have ended; it does not go back.
  void advance(Duration now, std::vector<PipelineGap>& begun);
  /// Of the openings.
  [[nodiscard]] Duration longest() const { return whole_.longest_of_all; }
  /// No gap lasts longer.
  [[nodiscard]] Duration most() const { return most_; }

private:
  /// Gaps of one iteration, whose times count from its begin.
  struct Iteration {
    std::vector<Duration> longest;               ///< by group
    std::vector<std::uint64_t> taken;            ///< by group: a bit for each opening
    std::vector<std::vector<PipelineGap>> rest;  ///< by group: what is left of taken openings
    Duration longest_of_all{};
  };
  static constexpr std::size_t kGroup = 64;

  [[nodiscard]] std::size_t groups() const { return whole_.longest.size(); }
  [[nodiscard]] std::size_t group_of(const PipelineGap& gap) const;
  [[nodiscard]] std::size_t opened_group() const { return next_ == 0 ? 0 : (next_ - 1) / kGroup; }
  [[nodiscard]] const Iteration* find(std::int64_t iteration) const;
  [[nodiscard]] Iteration& own(std::int64_t iteration);
  [[nodiscard]] std::optional<PipelineGap> first_in(const Iteration& iteration, std::size_t group,
                                                    const PipelineGap& after,
                                                    Duration length) const;
  void set_longest(Iteration& iteration, std::size_t group) const;
  void skip_ended(Duration now);
  void open_iteration(Duration now, std::vector<PipelineGap>& begun);

  Duration period_, most_;
  std::int64_t iterations_;
  GapOrder order_;
  std::vector<PipelineGap> openings_;  ///< of one iteration, in order
  std::vector<PipelineGap> firsts_;    ///< of each group
  Iteration whole_, none_;             ///< of which nothing is taken; beyond the last
  std::int64_t iteration_ = 0;         ///< that `now` lies in
  std::size_t next_ = 0;               ///< opening of it
  std::deque<Iteration> own_;          ///< of iteration_ and those after it
};

/// Gaps that have begun: at most one of each pipeline, for a GPU is in one bubble at a time.
class OpenGaps {
public:
  OpenGaps(std::size_t pipelines, GapOrder order);
  /// Of two gaps of a pipeline the one that ends later counts: the other one is over.
  void open(std::uint32_t pipeline, Duration end);
  /// Removes the gap that ends then, if it is there.
  void close(std::uint32_t pipeline, Duration end);
  /// What ends by `now` is of no use any more.
  void forget(Duration now);
  /// The next one in the order after `last` (nullopt: the first) that lasts until `until`; its
  /// start is not known.
  [[nodiscard]] std::optional<PipelineGap> next(const std::optional<PipelineGap>& last,
                                                Duration until);

private:
  static constexpr std::size_t kGroup = 64;

  [[nodiscard]] std::optional<PipelineGap> next_pipeline(std::size_t first, Duration until);

  GapOrder order_;
  std::vector<Duration> until_;        ///< by pipeline; min(): none
  std::vector<Duration> group_until_;  ///< at least the latest of kGroup pipelines
  std::set<std::pair<Duration, std::uint32_t>> by_end_;  ///< where the order is GapOrder::end
};

/// The gaps of the first stages of a served model's pipelines, in the order in which a policy tries
/// them, without a look at all pipelines. FreeTime is what counts; the index follows it by
/// advance() and replace(). Finding and taking are parted: a Search changes no answer.
class GapIndex {
public:
  /// Precondition: the period is positive. Gaps shorter than `least` (a positive time) are left
  /// out.
  GapIndex(const IterationBubbles& iteration, const ServingPipelines& serving, Duration guard,
           Duration least, const FillRange& range, GapOrder order);

  /// No search begins before this time any more; it does not go back.
  void advance(Duration now);
  [[nodiscard]] Duration now() const { return now_; }
  /// The longest prompt that a whole bubble holds.
  [[nodiscard]] Duration longest() const { return later_.longest(); }
  /// Something was taken from a gap of a GPU.
  void replace(std::int32_t rank, const SplitGap& split);

  /// The gaps in which a prompt of one stage of that length fits from `from` on, and begins by
  /// `limit`: by the earliest start in them, ties by the order. Changes nothing that others see;
  /// not to be used after advance() or replace().
  class Search {
  public:
    /// Precondition: from >= index.now(), length > 0.
    Search(GapIndex& index, Duration from, Duration length, Duration limit);
    /// The gap from the prompt's earliest start on; nullopt: no more.
    [[nodiscard]] std::optional<PipelineGap> next();

  private:
    void find_window();

    GapIndex& index_;
    Duration from_, length_, limit_;
    std::vector<PipelineGap> window_;  ///< gaps that begin from now to `from`
    std::size_t in_window_ = 0;
    std::optional<PipelineGap> open_{};  ///< the last one of those open now
    bool open_is_over_ = false;          ///< there is none after it
    PipelineGap later_{};                ///< the last one of those that begin after `from`
  };

private:
  [[nodiscard]] PipelineGap usable(std::uint32_t pipeline, const FreeGap& gap) const;
  void insert(const PipelineGap& gap);
  void remove(const PipelineGap& gap);

  Duration guard_, least_, now_{-1};
  GapOrder order_;
  std::vector<std::int64_t> pipeline_of_;  ///< by rank; -1: no first stage
  LaterGaps later_;
  OpenGaps open_;
  std::vector<PipelineGap> begun_;  ///< scratch of advance()
};

}  // namespace longhaul::prefill
