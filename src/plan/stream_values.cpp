#include "plan/stream_values.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"

namespace longhaul::plan {

void StreamValues::append(const StreamSetting& setting) {
  LONGHAUL_ASSERT(setting.from_iteration >= last(), "a setting from {} on after one from {} on",
                  setting.from_iteration, last());
  Change change;
  if (changes_.empty()) {
    for (const Op& op : plan_.ops) {
      change.durations.push_back(op.duration);
      change.sizes.push_back(op.size);
    }
  } else {
    change = changes_.back();
  }
  change.from = setting.from_iteration;
  for (const auto& [op, duration, size] : setting.durations) {
    change.durations[index(op)] = duration;
    if (size) change.sizes[index(op)] = *size;
  }
  changes_.push_back(std::move(change));
}

void StreamValues::forget_before(int iteration) {
  const auto next = std::ranges::upper_bound(changes_, iteration, {}, &Change::from);
  if (next != changes_.begin()) changes_.erase(changes_.begin(), std::prev(next));
}

const StreamValues::Change* StreamValues::change_of(int iteration) const {
  const auto next = std::ranges::upper_bound(changes_, iteration, {}, &Change::from);
  return next == changes_.begin() ? nullptr : &*std::prev(next);
}

StreamSetting setting_between(const Plan& before, const Plan& after, int from_iteration) {
  const auto same_lane = [](const Lane& one, const Lane& other) {
    return one.rank == other.rank && one.name == other.name && one.count == other.count;
  };
  if (before.ops.size() != after.ops.size() ||
      !std::ranges::equal(before.lanes, after.lanes, same_lane))
    fail("{}: a plan with other ops cannot go on where this one is (it has {} ops, not {}).",
         before.schedule, after.ops.size(), before.ops.size());
  StreamSetting setting{from_iteration, {}};
  for (std::uint32_t i = 0; i < before.ops.size(); ++i) {
    const Op& was = before.ops[i];
    const Op& is = after.ops[i];
    if (was.duration == is.duration && was.size == is.size) continue;
    setting.durations.push_back({OpId{i}, is.duration, is.size});
  }
  return setting;
}

}  // namespace longhaul::plan
