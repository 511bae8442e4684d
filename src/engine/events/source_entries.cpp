#include "engine/events/source_entries.hpp"

#include <algorithm>
#include <tuple>

#include "base/index.hpp"

namespace longhaul::engine {

void SourceEntries::begin(const Plan& plan, Rank self) {
  entries_.clear();
  ends_.clear();
  forgotten_ = 0;
  for (const plan::LaneSource& each : plan.extras.sources) {
    const Lane& lane = plan.lanes[index(each.lane)];
    if (lane.rank != self || lane.count == 0) continue;
    Entry& entry = entries_.emplace_back();
    entry.lane = each.lane;
    entry.source = each.make();
    entry.taken.resize(lane.count);
  }
  std::ranges::sort(entries_, {}, &Entry::lane);
}

SourceEntries::Entry* SourceEntries::of_lane(LaneId lane) {
  const auto found = std::ranges::find(entries_, lane, &Entry::lane);
  return found == entries_.end() ? nullptr : &*found;
}

bool SourceEntries::is_due(const Entry& entry, TimePoint at) const {
  switch (entry.state) {
    case State::due: return true;
    case State::until: return entry.until <= at;
    case State::for_end: return entry.seen < forgotten_ + ends_.size();
    case State::busy:
    case State::over: return false;
  }
  return false;
}

plan::Decision SourceEntries::ask(Entry& entry, Duration now, int iteration) {
  std::vector<plan::OpEnd> heard(
      ends_.begin() + static_cast<std::ptrdiff_t>(entry.seen - forgotten_), ends_.end());
  std::ranges::sort(heard, {}, [](const plan::OpEnd& end) {
    return std::tuple{end.end, end.iteration, end.op};
  });
  entry.seen = forgotten_ + ends_.size();
  forget_what_all_know();
  return entry.source->next(plan::PastEvents{now, iteration, heard});
}

void SourceEntries::forget_what_all_know() {
  std::size_t least = forgotten_ + ends_.size();
  for (const Entry& entry : entries_)
    if (entry.state != State::over) least = std::min(least, entry.seen);
  if (least - forgotten_ < 1024) return;
  ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(least - forgotten_));
  forgotten_ = least;
}

}  // namespace longhaul::engine
