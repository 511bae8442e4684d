#include "engine/events/hold_table.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/index.hpp"

namespace longhaul::engine {

struct HoldTable::Head {
  SharedMutex mutex;
};

/// Of a resource that chooses.
struct HoldTable::Holds {
  std::atomic<std::uint32_t> held;
  std::uint32_t last;
  std::int64_t released;
};

/// One of as many as a resource holds at a time, in order of readiness.
struct HoldTable::Slot {
  std::int64_t free;
  std::uint32_t held_before;
  std::uint32_t holder;
};

struct HoldTable::Wanted {
  std::uint32_t there;
  ChoiceKey key;
};

HoldTable::Layout HoldTable::layout(const Plan& plan, std::size_t ranks) {
  const auto aligned = [](std::size_t at) { return (at + 63) / 64 * 64; };
  std::size_t slots = 0;
  for (const Resource& resource : plan.resources)
    slots += std::min<std::size_t>(resource.capacity, plan.ops.size());
  Layout places{};
  places.holds = aligned(sizeof(Head));
  places.slots = aligned(places.holds + sizeof(Holds) * plan.resources.size());
  places.wanted = aligned(places.slots + sizeof(Slot) * slots);
  places.end = aligned(places.wanted + sizeof(Wanted) * plan.resources.size() * ranks);
  return places;
}

std::size_t HoldTable::bytes(const Plan& plan, std::size_t ranks) {
  return layout(plan, ranks).end;
}

HoldTable::HoldTable(const Plan& plan, std::byte* memory, bool make, std::size_t ranks,
                     std::size_t self)
    : plan_{plan},
      ranks_{ranks},
      self_{self},
      head_{reinterpret_cast<Head*>(memory)},
      holds_{reinterpret_cast<Holds*>(memory + layout(plan, ranks).holds)},
      slots_{reinterpret_cast<Slot*>(memory + layout(plan, ranks).slots)},
      wanted_{reinterpret_cast<Wanted*>(memory + layout(plan, ranks).wanted)},
      first_slot_{0} {
  for (const Resource& resource : plan.resources)
    first_slot_.push_back(first_slot_.back() +
                          std::min<std::size_t>(resource.capacity, plan.ops.size()));
  if (make) head_->mutex.make();
}

void HoldTable::clear() {
  const SharedLock lock{head_->mutex};
  for (std::size_t i = 0; i < plan_.resources.size(); ++i) {
    holds_[i].held.store(0);
    holds_[i].released = 0;
    wanted_[i * ranks_ + self_].there = 0;
  }
  for (std::size_t i = 0; i < first_slot_.back(); ++i) slots_[i] = {};
}

HoldTable::Slot& HoldTable::earliest(ResourceId resource) const {
  Slot* const first = slots_ + first_slot_[index(resource)];
  return *std::min_element(first, slots_ + first_slot_[index(resource) + 1],
                           [](const Slot& a, const Slot& b) { return a.free < b.free; });
}

std::optional<HoldTable::Free> HoldTable::serve(
    OpId op, TimePoint from, const std::function<std::optional<TimePoint>(TimePoint)>& hold_until) {
  const SharedLock lock{head_->mutex};
  Free free;
  for (const ResourceId held : plan_.resources_of(op)) {
    const Slot& slot = earliest(held);
    if (slot.held_before == 0 || slot.free <= free.at.count()) continue;
    free = {TimePoint{slot.free}, OpId{slot.holder}};
  }
  const auto until = hold_until(std::max(from, free.at));
  if (!until) return std::nullopt;
  for (const ResourceId held : plan_.resources_of(op))
    earliest(held) = {until->count(), 1, static_cast<std::uint32_t>(op)};
  return free;
}

void HoldTable::free_from(OpId op, TimePoint due) {
  const SharedLock lock{head_->mutex};
  for (const ResourceId held : plan_.resources_of(op)) {
    Slot* const first = slots_ + first_slot_[index(held)];
    std::fill(first, slots_ + first_slot_[index(held) + 1], Slot{});
    *first = {due.count(), 1, static_cast<std::uint32_t>(op)};
  }
}

bool HoldTable::all_free(OpId op) const {
  return std::ranges::all_of(plan_.resources_of(op), [&](ResourceId held) {
    return holds_[index(held)].held.load() < plan_.resources[index(held)].capacity;
  });
}

bool HoldTable::is_free(OpId op) const { return all_free(op); }

bool HoldTable::take_first(OpId op, const ChoiceKey& key) {
  const SharedLock lock{head_->mutex};
  if (!all_free(op)) return false;
  for (const ResourceId held : plan_.resources_of(op)) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const Wanted& other = wanted_[index(held) * ranks_ + rank];
      if (rank == self_ || other.there == 0 || other.key > key) continue;
      if (all_free(OpId{other.key.op})) return false;
    }
  }
  for (const ResourceId held : plan_.resources_of(op)) ++holds_[index(held)].held;
  return true;
}

void HoldTable::take(OpId op) {
  const SharedLock lock{head_->mutex};
  for (const ResourceId held : plan_.resources_of(op)) ++holds_[index(held)].held;
}

void HoldTable::let_go(OpId op, TimePoint due) {
  const SharedLock lock{head_->mutex};
  for (const ResourceId held : plan_.resources_of(op)) {
    Holds& holds = holds_[index(held)];
    --holds.held;
    holds.last = static_cast<std::uint32_t>(op);
    holds.released = due.count();
  }
}

void HoldTable::want(ResourceId resource, const std::optional<ChoiceKey>& key) {
  const SharedLock lock{head_->mutex};
  Wanted& own = wanted_[index(resource) * ranks_ + self_];
  own.there = key ? 1 : 0;
  if (key) own.key = *key;
}

HoldTable::Free HoldTable::last_release(OpId op) const {
  const SharedLock lock{head_->mutex};
  Free last;
  for (const ResourceId held : plan_.resources_of(op)) {
    const Holds& holds = holds_[index(held)];
    if (holds.released <= last.at.count()) continue;
    last = {TimePoint{holds.released}, OpId{holds.last}};
  }
  return last;
}

}  // namespace longhaul::engine
