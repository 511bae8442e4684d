#pragma once

#include <optional>
#include <queue>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"

namespace longhaul::engine {

/// Deadlines of ops: the end of a hold, an arrival. The earliest first, ties by op id.
class Timers {
public:
  struct Timer {
    TimePoint due{};
    OpId op{};
    friend bool operator>(const Timer& a, const Timer& b) {
      return a.due != b.due ? a.due > b.due : a.op > b.op;
    }
  };
  void add(TimePoint due, OpId op) { queue_.push({due, op}); }
  [[nodiscard]] TimePoint next() const { return queue_.empty() ? kNever : queue_.top().due; }
  /// Op of the earliest; none where there is none.
  [[nodiscard]] OpId next_op() const { return queue_.empty() ? kNone<OpId> : queue_.top().op; }
  [[nodiscard]] std::optional<Timer> take_due(TimePoint at) {
    if (next() > at) return std::nullopt;
    const Timer timer = queue_.top();
    queue_.pop();
    return timer;
  }

private:
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> queue_;
};

}  // namespace longhaul::engine
