#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::plan {

/// The deadlines of a plan's windows as who plays it knows them, and what their source has not
/// heard yet: ends that are over.
class AskedDeadlines {
public:
  /// Makes the source anew, where the plan has one.
  void begin(const MovingDeadlines& deadlines) {
    ended_.clear();
    source_ = deadlines.make ? deadlines.make() : nullptr;
    if (heeded_.empty() && !deadlines.heeds.empty())
      heeded_.resize(index(deadlines.heeds.back()) + 1);
    for (const OpId op : deadlines.heeds) heeded_[index(op)] = 1;
  }

  [[nodiscard]] bool moves() const { return source_ != nullptr; }
  [[nodiscard]] bool heeds(OpId op) const {
    return index(op) < heeded_.size() && heeded_[index(op)];
  }
  void add(const OpEnd& end) {
    if (source_ && heeds(end.op)) ended_.push_back(end);
  }
  /// Of an op with a window, whose deadline is `planned`, and that would start at `start`. Times
  /// count from the start of the run.
  [[nodiscard]] Duration of(OpId op, int iteration, Duration planned, Duration start,
                            Duration now) {
    if (!source_) return planned;
    const Duration deadline =
        source_->deadline(op, planned, start, PastEvents{now, iteration, ended_});
    ended_.clear();
    return deadline;
  }

private:
  std::unique_ptr<DeadlineSource> source_;
  std::vector<OpEnd> ended_;
  std::vector<std::uint8_t> heeded_;  ///< by op
};

}  // namespace longhaul::plan
