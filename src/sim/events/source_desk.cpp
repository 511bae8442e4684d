#include "sim/events/source_desk.hpp"

#include <algorithm>
#include <tuple>

#include "base/index.hpp"

namespace longhaul::sim {

SourceDesk::SourceDesk(const Plan& plan) {
  for (const plan::LaneSource& each : plan.extras.sources) {
    if (plan.lanes[index(each.lane)].count == 0) continue;
    Entry entry;
    entry.lane = static_cast<std::uint32_t>(index(each.lane));
    entry.source = each.make();
    entry.taken.resize(plan.lanes[index(each.lane)].count);
    entries_.push_back(std::move(entry));
  }
  std::ranges::sort(entries_, {}, &Entry::lane);
}

SourceDesk::Entry* SourceDesk::of_lane(std::uint32_t lane) {
  const auto found = std::ranges::find(entries_, lane, &Entry::lane);
  return found == entries_.end() ? nullptr : &*found;
}

bool SourceDesk::is_due(const Entry& entry, Duration now) const {
  switch (entry.state) {
    case State::due: return true;
    case State::until: return entry.until <= now;
    case State::for_end: return entry.seen < forgotten_ + ends_.size();
    case State::busy:
    case State::over: return false;
  }
  return false;
}

plan::Decision SourceDesk::ask(Entry& entry, Duration now, int iteration) {
  std::vector<plan::OpEnd> heard(
      ends_.begin() + static_cast<std::ptrdiff_t>(entry.seen - forgotten_), ends_.end());
  std::ranges::sort(heard, {}, [](const plan::OpEnd& end) {
    return std::tuple{end.end, end.iteration, end.op};
  });
  entry.seen = forgotten_ + ends_.size();
  forget_what_all_know();
  return entry.source->next(plan::PastEvents{now, iteration, heard});
}

void SourceDesk::forget_what_all_know() {
  std::size_t least = forgotten_ + ends_.size();
  for (const Entry& entry : entries_)
    if (entry.state != State::over) least = std::min(least, entry.seen);
  if (least - forgotten_ < 1024) return;
  ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(least - forgotten_));
  forgotten_ = least;
}

}  // namespace longhaul::sim
