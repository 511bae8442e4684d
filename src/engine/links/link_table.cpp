#include "engine/links/link_table.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.hpp"
#include "engine/links/shared_mutex.hpp"

namespace longhaul::engine {

struct LinkTable::Head {
  SharedMutex mutex;
  std::uint32_t served;  ///< how many serve() has served
  std::uint32_t turns;   ///< how many have had their turn in stated orders
};

struct LinkTable::Resource {
  std::uint32_t used;  ///< holders
  std::uint32_t turn;  ///< place in the stated order
  std::int64_t turn_since;
  std::uint32_t turn_by;  ///< who had the turn before
};

/// One of as many as a resource holds at a time.
struct LinkTable::Slot {
  std::uint32_t held;  ///< 1: by `holder`, whose send it is
  std::uint32_t holder;
  std::int64_t free;  ///< when it was let go last
  ShadowTime let_go;  ///< the same as it was seen, with and without credit
};

/// The sends of a lane that have asked and hold nothing yet, by their places in the lane.
struct LinkTable::Queue {
  std::uint32_t first;
  std::uint32_t end;
};

struct LinkTable::Waiter {
  enum State : std::uint32_t { none, asked, waiting, granted };
  std::atomic<std::uint32_t> state;
  std::uint32_t served;  ///< its place among those that serve() served; 0: served at once
  std::uint32_t turn;    ///< its place among those that had their turn; 0: not yet, or no order
  std::int64_t ready;    ///< and has had its turn
  std::int64_t free;     ///< before it holds anything: since when it is its turn
  std::uint32_t holder;
  ShadowTime let_go;
};

/// More than lanes can use are never held.
std::uint32_t LinkTable::slots_of(const Plan& plan, ResourceId resource) {
  return std::min(plan.resources[index(resource)].capacity,
                  static_cast<std::uint32_t>(plan.lanes.size()));
}

std::uint32_t LinkTable::waiters_of(const Lane& lane, Rank only) {
  const bool asks = lane.kind == OpKind::send && (only == kNone<Rank> || lane.rank == only);
  return asks ? lane.count : 0;
}

LinkTable::Layout LinkTable::layout(const Plan& plan, Rank only) {
  const auto aligned = [](std::size_t at) { return (at + 63) / 64 * 64; };
  Layout places{};
  places.resources = aligned(sizeof(Head));
  places.slots = aligned(places.resources + sizeof(Resource) * plan.resources.size());
  std::size_t slots = 0;
  for (std::size_t i = 0; i < plan.resources.size(); ++i)
    slots += slots_of(plan, ResourceId{static_cast<std::uint32_t>(i)});
  places.queues = aligned(places.slots + sizeof(Slot) * slots);
  places.waiters = aligned(places.queues + sizeof(Queue) * plan.lanes.size());
  std::size_t waiters = 0;
  for (const Lane& lane : plan.lanes) waiters += waiters_of(lane, only);
  places.end = aligned(places.waiters + sizeof(Waiter) * waiters);
  return places;
}

std::size_t LinkTable::bytes(const Plan& plan, Rank only) { return layout(plan, only).end; }

LinkTable::LinkTable(const Plan& plan, std::byte* memory, bool make, Rank only)
    : plan_{plan},
      head_{reinterpret_cast<Head*>(memory)},
      resources_{reinterpret_cast<Resource*>(memory + layout(plan, only).resources)},
      slots_{reinterpret_cast<Slot*>(memory + layout(plan, only).slots)},
      queues_{reinterpret_cast<Queue*>(memory + layout(plan, only).queues)},
      waiters_{reinterpret_cast<Waiter*>(memory + layout(plan, only).waiters)},
      claimed_(plan.resources.size()) {
  for (std::size_t i = 0, first = 0; i < plan.resources.size(); ++i) {
    const ResourceId resource{static_cast<std::uint32_t>(i)};
    first_slot_.push_back(first);
    first += slots_of(plan, resource);
    has_orders_ = has_orders_ || !plan.resources[i].order.empty();
  }
  std::size_t first = 0;
  for (const Lane& lane : plan.lanes) {
    first_waiter_.push_back(first);
    first += waiters_of(lane, only);
  }
  if (make) head_->mutex.make();
}

std::span<LinkTable::Slot> LinkTable::slots(ResourceId resource) const {
  return {slots_ + first_slot_[index(resource)], slots_of(plan_, resource)};
}

LinkTable::Waiter& LinkTable::waiter_of(OpId send) const {
  const LaneId lane = plan_.op(send).lane;
  return waiters_[first_waiter_[index(lane)] + index(send) - index(plan_.lanes[index(lane)].first)];
}

LinkTable::Queue& LinkTable::queue_of(OpId send) const {
  return queues_[index(plan_.op(send).lane)];
}

/// Adds it to its lane's queue; with the lane's first send an iteration begins.
void LinkTable::enqueue(OpId send, TimePoint ready, std::uint32_t state) {
  const auto place = static_cast<std::uint32_t>(index(send) - index(plan_.lane_of(send).first));
  Queue& queue = queue_of(send);
  if (place == 0) queue.first = 0;
  queue.end = place + 1;
  Waiter& waiter = waiter_of(send);
  waiter.ready = ready.count();
  waiter.served = waiter.turn = 0;
  waiter.free = 0;
  waiter.holder = static_cast<std::uint32_t>(kNone<OpId>);
  waiter.let_go = {};
  waiter.state.store(state);
}

void LinkTable::request(OpId send, TimePoint ready, std::vector<OpId>& granted) {
  const SharedLock lock{head_->mutex};
  enqueue(send, ready, Waiter::waiting);
  grant_what_is_free(granted);
}

void LinkTable::ask(OpId send, TimePoint ready) {
  const SharedLock lock{head_->mutex};
  enqueue(send, ready, Waiter::asked);
}

std::optional<Arbiter::Request> LinkTable::first_request(LaneId lane) const {
  const Queue& queue = queues_[index(lane)];
  const auto first = static_cast<std::uint32_t>(index(plan_.lanes[index(lane)].first));
  for (std::uint32_t place = queue.first; place < queue.end; ++place) {
    const OpId send{first + place};
    const Waiter& waiter = waiter_of(send);
    if (waiter.state.load() != Waiter::asked) continue;
    if (!is_turn(send)) return std::nullopt;
    return Arbiter::Request{Arbiter::Step::request, waiter.ready, 0,
                            static_cast<std::uint32_t>(send)};
  }
  return std::nullopt;
}

void LinkTable::serve(OpId send, std::vector<OpId>& granted) {
  const SharedLock lock{head_->mutex};
  Waiter& waiter = waiter_of(send);
  waiter.served = ++head_->served;
  waiter.state.store(Waiter::waiting);
  take_turn(send, now());
  grant_what_is_free(granted);
}

bool LinkTable::take(OpId send, Grant& grant) {
  Waiter& waiter = waiter_of(send);
  if (waiter.state.load() != Waiter::granted) return false;
  grant = {TimePoint{waiter.free}, OpId{waiter.holder}, waiter.let_go};
  waiter.state.store(Waiter::none);
  return true;
}

void LinkTable::release(OpId send, TimePoint due, std::vector<OpId>& granted,
                        const ShadowTime& seen) {
  const SharedLock lock{head_->mutex};
  for (const ResourceId id : plan_.resources_of(send)) {
    --resources_[index(id)].used;
    for (Slot& slot : slots(id)) {
      if (slot.held == 0 || slot.holder != static_cast<std::uint32_t>(send)) continue;
      slot.held = 0;
      slot.free = due.count();
      slot.let_go = seen;
    }
  }
  grant_what_is_free(granted);
}

/// Those that wait, in the order in which they are served; of a lane none before the one before it.
void LinkTable::collect_waiting() {
  order_.clear();
  for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) {
    std::int64_t ready = 0;
    for (std::uint32_t place = queues_[lane].first; place < queues_[lane].end; ++place) {
      const OpId send{static_cast<std::uint32_t>(index(plan_.lanes[lane].first)) + place};
      const Waiter& waiter = waiter_of(send);
      if (waiter.state.load() != Waiter::waiting) break;
      ready = std::max(ready, waiter.ready);
      order_.emplace_back(waiter.served, ready, waiter.turn, send);
    }
  }
  std::ranges::sort(order_);
}

/// One after the other gets its resources, or a place on each of them. With that it may be the turn
/// of one that stands before it here, which is then served next.
void LinkTable::grant_what_is_free(std::vector<OpId>& granted) {
  collect_waiting();
  for (std::size_t next = 0; next < order_.size();) {
    OpId& send = std::get<OpId>(order_[next++]);
    if (send == kNone<OpId>) continue;
    if (const Waiter& waiter = waiter_of(send); waiter.served == 0 && waiter.turn == 0) {
      if (!is_turn(send)) continue;
      take_turn(send, TimePoint{waiter.ready});
    }
    grant_or_claim(std::exchange(send, kNone<OpId>), granted);
    if (has_orders_) next = 0;
  }
  claimed_.assign(claimed_.size(), 0);
}

void LinkTable::grant_or_claim(OpId send, std::vector<OpId>& granted) {
  if (is_free(send)) {
    hand_over(send);
    granted.push_back(send);
    return;
  }
  for (const ResourceId id : plan_.resources_of(send)) ++claimed_[index(id)];
}

bool LinkTable::is_turn(OpId send) const {
  if (!keeps_order(plan_.op(send))) return true;
  return std::ranges::all_of(plan_.resources_of(send), [&](ResourceId id) {
    const auto& order = plan_.resources[index(id)].order;
    // Every user has its turn once in an iteration.
    return order.empty() || order[resources_[index(id)].turn % order.size()] == send;
  });
}

bool LinkTable::is_free(OpId send) const {
  const auto place = index(send) - index(plan_.lane_of(send).first);
  return queue_of(send).first == place &&
         std::ranges::all_of(plan_.resources_of(send), [&](ResourceId id) {
           return resources_[index(id)].used + claimed_[index(id)] < slots(id).size();
         });
}

/// It has its turn in the stated orders; those after it have theirs from `served` on, at the
/// earliest.
void LinkTable::take_turn(OpId send, TimePoint served) {
  if (!keeps_order(plan_.op(send))) return;
  Waiter& waiter = waiter_of(send);
  for (const ResourceId id : plan_.resources_of(send)) {
    if (plan_.resources[index(id)].order.empty()) continue;
    Resource& resource = resources_[index(id)];
    if (waiter.turn == 0) waiter.turn = ++head_->turns;
    if (resource.turn_since > waiter.free) {
      waiter.free = resource.turn_since;
      waiter.holder = resource.turn_by;
    }
    ++resource.turn;
  }
  if (waiter.turn == 0) return;  // none is stated
  waiter.ready = std::max(waiter.ready, waiter.free);
  for (const ResourceId id : plan_.resources_of(send)) {
    resources_[index(id)].turn_since = std::max(waiter.ready, served.count());
    resources_[index(id)].turn_by = static_cast<std::uint32_t>(send);
  }
}

/// The place that has been free for longest, as the simulator has it, but for those that are kept
/// for ops served before.
LinkTable::Slot* LinkTable::next_place(ResourceId resource) const {
  const std::uint32_t kept = claimed_[index(resource)];
  std::vector<Slot*> free;
  for (Slot& slot : slots(resource))
    if (slot.held == 0) free.push_back(&slot);
  std::ranges::stable_sort(free, {}, &Slot::free);
  return kept < free.size() ? free[kept] : nullptr;
}

void LinkTable::hand_over(OpId send) {
  Waiter& waiter = waiter_of(send);
  const auto turn = std::pair{waiter.free, waiter.holder};
  waiter.free = 0;
  waiter.holder = static_cast<std::uint32_t>(kNone<OpId>);
  for (const ResourceId id : plan_.resources_of(send)) {
    ++resources_[index(id)].used;
    Slot* const place = next_place(id);
    LONGHAUL_ASSERT(place != nullptr, "{} has no place", plan_.resources[index(id)].name);
    if (place->free > waiter.free) {
      waiter.free = place->free;
      waiter.holder = place->holder;
    }
    waiter.let_go.raise(place->let_go);
    place->held = 1;
    place->holder = static_cast<std::uint32_t>(send);
  }
  if (turn.first > waiter.free) std::tie(waiter.free, waiter.holder) = turn;
  ++queue_of(send).first;
  waiter.state.store(Waiter::granted);
}

}  // namespace longhaul::engine
