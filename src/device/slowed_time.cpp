#include "device/slowed_time.hpp"

#include <algorithm>

namespace longhaul::device {

void SlowedTime::add(NetworkLevel level, TimePoint from, TimePoint to) {
  if (to <= from) return;
  insert({from, level, 1});
  insert({to, level, -1});
}

void SlowedTime::insert(const Change& change) {
  changes_.insert(std::ranges::upper_bound(changes_, change.at, {}, &Change::at), change);
}

TimePoint SlowedTime::end_of(TimePoint begin, Duration work) const {
  plan::SlowRates::Holds holds = holds_;
  plan::SlowRates::Parts left = rates_.parts_of(work);
  TimePoint since = begin;
  for (const Change& change : changes_) {
    if (change.at > since) {
      const plan::SlowRates::Parts rate = rates_.rate(holds);
      const TimePoint end = since + plan::SlowRates::time_for(left, rate);
      if (end <= change.at) return end;
      left -= rate * (change.at - since).count();
      since = change.at;
    }
    holds[static_cast<std::size_t>(change.level)] += change.by;
  }
  return since + plan::SlowRates::time_for(left, rates_.rate(holds));
}

void SlowedTime::forget_before(TimePoint time) {
  const auto kept = std::ranges::upper_bound(changes_, time, {}, &Change::at);
  for (auto at = changes_.begin(); at != kept; ++at)
    holds_[static_cast<std::size_t>(at->level)] += at->by;
  changes_.erase(changes_.begin(), kept);
}

}  // namespace longhaul::device
