#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"

namespace longhaul::plan {

/// A source's words on an op that it draws, for all sources: they hear them with its end.
using DrawnWords = std::array<std::int64_t, 2>;

/// An op that has ended.
struct OpEnd {
  OpId op{};
  int iteration = 0;
  Duration end{};
  DrawnWords words{};  ///< of one that a source drew
  friend bool operator==(const OpEnd&, const OpEnd&) = default;
};

/// What a source may know at an instant: all that has ended by then, and nothing else. It holds
/// ends that are over and no plan, so there is no way to ask it for what has not happened.
class PastEvents {
public:
  PastEvents(Duration now, int iteration, std::span<const OpEnd> ended)
      : now_{now}, iteration_{iteration}, ended_{ended} {}
  [[nodiscard]] Duration now() const { return now_; }
  /// That the lane is in.
  [[nodiscard]] int iteration() const { return iteration_; }
  /// Ops of any rank that ended since this source was asked last, by (end, iteration, op).
  [[nodiscard]] std::span<const OpEnd> ended() const { return ended_; }

private:
  Duration now_;
  int iteration_;
  std::span<const OpEnd> ended_;
};

/// This op of the lane is its next; it starts when it is ready and what it holds is free.
struct Draw {
  OpId op{};
  std::optional<Duration> takes{};  ///< nullopt: as long as the plan says
  DrawnWords words{};
};
/// Nothing before this time; it is asked again then.
struct WaitUntil {
  Duration time{};
};
/// Nothing until an op of the plan ends; it is asked again then, or at this time.
struct WaitForEnd {
  Duration until = Duration::max();
};
/// No more ops of this iteration: what it has not drawn will not run.
struct LaneOver {};
using Decision = std::variant<Draw, WaitUntil, WaitForEnd, LaneOver>;

/// Says what a lane does next. It is asked whenever the op that it drew last is over, at the end of
/// an instant: all that ended by then has ended. Each op of the lane may be drawn once an
/// iteration. The same past must give the same decision: simulator and ranks both ask.
class OpSource {
public:
  OpSource() = default;
  OpSource(const OpSource&) = delete;
  OpSource& operator=(const OpSource&) = delete;
  virtual ~OpSource() = default;
  [[nodiscard]] virtual Decision next(const PastEvents& past) = 0;
};

/// Says by when optional ops must end, as far as what has ended tells: it draws nothing. It is
/// asked when one could start. The same past must give the same answer: simulator and ranks both
/// ask.
class DeadlineSource {
public:
  DeadlineSource() = default;
  DeadlineSource(const DeadlineSource&) = delete;
  DeadlineSource& operator=(const DeadlineSource&) = delete;
  virtual ~DeadlineSource() = default;
  /// Of an op whose window says `planned` and that would start at `start`, now, later or just
  /// before; times count from the run's start, ends are in any order.
  [[nodiscard]] virtual Duration deadline(OpId op, Duration planned, Duration start,
                                          const PastEvents& past) = 0;
};

/// The source that a lane without one has: its ops, one after the other, in every iteration.
class FixedList : public OpSource {
public:
  explicit FixedList(std::vector<OpId> ops) : ops_{std::move(ops)} {}
  [[nodiscard]] Decision next(const PastEvents&) override {
    if (next_ < ops_.size()) return Draw{ops_[next_++]};
    next_ = 0;
    return LaneOver{};
  }

private:
  std::vector<OpId> ops_;
  std::size_t next_ = 0;
};

}  // namespace longhaul::plan
