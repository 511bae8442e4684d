#include "engine/links/link_conditions.hpp"

#include <algorithm>

namespace longhaul::engine {

void LinkConditions::begin_iteration(int iteration, const PlayedWeather& played) {
  played_ = played;
  // Warm-up iterations count from -1 downwards: numbers of their own, as large ones.
  iteration_ = static_cast<std::uint64_t>(iteration);
  going_on_.clear();
}

Duration LinkConditions::age(TimePoint at) const {
  return played_.start == kNever ? kBeforeWeather : at - played_.start;
}

Duration LinkConditions::hold(OpId send, TimePoint begin) const {
  if (played_.weather == nullptr) return plan_.op(send).duration;
  return played_.weather->hold(send, iteration_, age(begin));
}

Duration LinkConditions::latency(OpId recv, TimePoint end) const {
  if (played_.weather == nullptr) return plan_.op(recv).duration;
  return played_.weather->latency(recv, iteration_, age(end));
}

Duration LinkConditions::collective(OpId member, TimePoint begin) const {
  if (played_.weather == nullptr) return plan_.op(member).duration;
  return played_.weather->collective(member, iteration_, age(begin));
}

void LinkConditions::going_on(OpId op, TimePoint since) {
  if (played_.weather != nullptr) going_on_.push_back({op, since, kNever});
}

void LinkConditions::over(OpId op) {
  std::erase_if(going_on_, [op](const GoingOn& entry) { return entry.op == op; });
}

std::optional<LinkConditions::OutageHold> LinkConditions::look_for_outage(TimePoint at) {
  std::optional<OutageHold> longest;
  for (GoingOn& entry : going_on_) {
    const Duration left = played_.weather->outage_left(entry.op, age(at));
    if (left <= Duration::zero()) {
      entry.held_since = kNever;
      continue;
    }
    if (entry.held_since == kNever) {
      const bool from_begin =
          played_.weather->outage_left(entry.op, age(entry.since)) >= at - entry.since;
      entry.held_since = from_begin ? entry.since : at;
    }
    if (!longest || entry.held_since < longest->since)
      longest = OutageHold{entry.op, entry.held_since, left};
  }
  return longest;
}

}  // namespace longhaul::engine
