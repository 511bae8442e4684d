#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/plan.hpp"

namespace longhaul::plan {

/// The sources of a plan's lanes as who plays it asks them, and what each of them has heard: ends
/// that are over. `Instance` names an op in an iteration there.
template <typename Instance>
class AskedSources {
public:
  enum class State : std::uint8_t { busy, due, until, for_end, over };
  /// A source and its lane: `busy` while the op that it drew is not over.
  struct Entry {
    LaneId lane{};
    std::unique_ptr<OpSource> source;
    State state = State::due;
    Duration until{};           ///< by the clock of is_due()
    std::size_t seen = 0;       ///< of all ends
    Instance drawn{};           ///< where busy
    Draw last{kNone<OpId>};     ///< what it drew last
    std::vector<bool> taken{};  ///< by position on the lane: drawn in this iteration
  };

  /// Makes the sources of a rank, or of all, anew.
  void begin(const Plan& plan, Rank only = kNone<Rank>) {
    entries_.clear();
    ends_.clear();
    forgotten_ = 0;
    for (const LaneSource& each : plan.extras.sources) {
      const Lane& lane = plan.lanes[index(each.lane)];
      if (lane.count == 0 || (only != kNone<Rank> && lane.rank != only)) continue;
      Entry& entry = entries_.emplace_back();
      entry.lane = each.lane;
      entry.source = each.make();
      entry.taken.resize(lane.count);
    }
    std::ranges::sort(entries_, {}, &Entry::lane);
  }

  [[nodiscard]] std::vector<Entry>& entries() { return entries_; }
  [[nodiscard]] bool none() const { return entries_.empty(); }
  [[nodiscard]] Entry* of_lane(LaneId lane) {
    const auto found = std::ranges::find(entries_, lane, &Entry::lane);
    return found == entries_.end() ? nullptr : &*found;
  }
  void add(const OpEnd& end) {
    if (!entries_.empty()) ends_.push_back(end);
  }
  /// What the lane's source said of the op as it drew it; nullptr: nothing, or others since.
  [[nodiscard]] const Draw* draw_of(LaneId lane, OpId op) const {
    const auto found = std::ranges::find(entries_, lane, &Entry::lane);
    return found == entries_.end() || found->last.op != op ? nullptr : &found->last;
  }

  /// Is it to be asked at this instant?
  [[nodiscard]] bool is_due(const Entry& entry, Duration now) const {
    switch (entry.state) {
      case State::due: return true;
      case State::until: return entry.until <= now;
      case State::for_end: return entry.seen < forgotten_ + ends_.size() || entry.until <= now;
      case State::busy:
      case State::over: return false;
    }
    return false;
  }

  /// Asks it, with all that has ended since it was asked last. `now`: since the start.
  [[nodiscard]] Decision ask(Entry& entry, Duration now, int iteration) {
    std::vector<OpEnd> heard(ends_.begin() + static_cast<std::ptrdiff_t>(entry.seen - forgotten_),
                             ends_.end());
    std::ranges::sort(heard, {}, [](const OpEnd& end) {
      return std::tuple{end.end, end.iteration, end.op};
    });
    entry.seen = forgotten_ + ends_.size();
    forget_what_all_know();
    return entry.source->next(PastEvents{now, iteration, heard});
  }

  /// Notes that it draws the op. Throws Error where that is not on its lane, or was drawn before.
  static void take(Entry& entry, const Lane& lane, const Draw& draw) {
    const OpId op = draw.op;
    const std::size_t place = index(op) - index(lane.first);
    const bool is_there = index(op) >= index(lane.first) && place < lane.count;
    if (!is_there || entry.taken[place])
      fail(
          "the source of lane \"{}\" draws op {}, which {}. A source draws each op of its lane "
          "once an iteration.",
          lane.name, index(op), is_there ? "it has drawn before" : "is not on that lane");
    entry.taken[place] = true;
    entry.last = draw;
  }

private:
  void forget_what_all_know() {
    std::size_t least = forgotten_ + ends_.size();
    for (const Entry& entry : entries_)
      if (entry.state != State::over) least = std::min(least, entry.seen);
    if (least - forgotten_ < 1024) return;
    ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(least - forgotten_));
    forgotten_ = least;
  }

  std::vector<Entry> entries_;
  std::vector<OpEnd> ends_;    ///< those that some source has not heard of
  std::size_t forgotten_ = 0;  ///< ends before these
};

}  // namespace longhaul::plan
