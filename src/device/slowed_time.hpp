#pragma once

#include <vector>

#include "base/clock.hpp"
#include "plan/extras/slow_rates.hpp"

namespace longhaul::device {

/// When blocks of a rank end that go on more slowly while messages hold it (plan::Overlap). The
/// rank knows how long a message will hold it when it begins.
class SlowedTime {
public:
  explicit SlowedTime(const plan::Overlap& overlap) : rates_{overlap} {}

  /// A message of that level holds the rank from `from` to before `to`.
  void add(NetworkLevel level, TimePoint from, TimePoint to);
  /// The end of `work` that begins at `begin`, by the messages that were added.
  [[nodiscard]] TimePoint end_of(TimePoint begin, Duration work) const;
  /// No work will begin before `time`.
  void forget_before(TimePoint time);

private:
  /// One message more, or less, from a time on.
  struct Change {
    TimePoint at{};
    NetworkLevel level{};
    int by = 0;
  };
  void insert(const Change& change);

  plan::SlowRates rates_;
  plan::SlowRates::Holds holds_{};  ///< before all `changes_`
  std::vector<Change> changes_;     ///< by time
};

}  // namespace longhaul::device
