#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/events/live_ops.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {

/// The sources of a rank's lanes, and what each of them has heard: ends that are over, of this rank
/// and those that others have published.
class SourceEntries {
public:
  enum class State : std::uint8_t { busy, due, until, for_end, over };
  /// A source and its lane: `busy` while the op that it drew is not over.
  struct Entry {
    LaneId lane{};
    std::unique_ptr<plan::OpSource> source;
    State state = State::due;
    TimePoint until{};
    std::size_t seen = 0;  ///< of all ends
    OpInstance* drawn = nullptr;
    std::vector<bool> taken{};  ///< by position on the lane: drawn in this iteration
  };
  /// Makes the sources of `self` anew.
  void begin(const Plan& plan, Rank self);

  [[nodiscard]] std::vector<Entry>& entries() { return entries_; }
  [[nodiscard]] bool none() const { return entries_.empty(); }
  [[nodiscard]] Entry* of_lane(LaneId lane);
  void add(const plan::OpEnd& end) {
    if (!entries_.empty()) ends_.push_back(end);
  }
  [[nodiscard]] bool is_due(const Entry& entry, TimePoint at) const;
  /// Asks it, with all that has ended since it was asked last. `now`: since the start.
  [[nodiscard]] plan::Decision ask(Entry& entry, Duration now, int iteration);

private:
  void forget_what_all_know();

  std::vector<Entry> entries_;
  std::vector<plan::OpEnd> ends_;  ///< those that some source has not heard of
  std::size_t forgotten_ = 0;      ///< ends before these
};

}  // namespace longhaul::engine
