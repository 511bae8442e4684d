#include "engine/links/link_table.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <tuple>

#include <pthread.h>

#include "base/error.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace longhaul::engine {
namespace {

/// The thread sanitizer of g++ 12 does not know pthread_mutex_clocklock: it is told what is locked.
void tell_locked([[maybe_unused]] pthread_mutex_t& mutex) {
#if defined(__SANITIZE_THREAD__)
  __tsan_mutex_pre_lock(&mutex, 0);
  __tsan_mutex_post_lock(&mutex, 0, 0);
#endif
}

}  // namespace

/// Robust: a rank that is killed while it holds the lock does not leave the others hanging.
struct LinkTable::Mutex {
  pthread_mutex_t handle;

  void make() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&handle, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
};

class LinkTable::Lock {
public:
  explicit Lock(Mutex& mutex) : mutex_{mutex} {
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += kPatienceSeconds;
    const int result = pthread_mutex_clocklock(&mutex_.handle, CLOCK_MONOTONIC, &until);
    if (result == EOWNERDEAD) pthread_mutex_consistent(&mutex_.handle);
    if (result == ETIMEDOUT)
      throw Error{fmt::format("the table of shared links has been locked for {} s (a rank was "
                              "stopped while it held the lock). Start the run again.",
                              kPatienceSeconds),
                  ExitCode::run_failed};
    tell_locked(mutex_.handle);
  }
  ~Lock() { pthread_mutex_unlock(&mutex_.handle); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

private:
  static constexpr int kPatienceSeconds = 10;  // it is held for a microsecond
  Mutex& mutex_;
};

struct LinkTable::Resource {
  std::uint32_t used;  ///< holders
  std::uint32_t turn;  ///< place in the stated order
};

/// One of as many as a resource holds at a time.
struct LinkTable::Slot {
  std::uint32_t held;  ///< 1: by `holder`, whose send it is
  std::uint32_t holder;
  std::int64_t free;  ///< when it was let go last
};

struct LinkTable::Waiter {
  enum State : std::uint32_t { none, waiting, granted };
  std::atomic<std::uint32_t> state;
  std::uint32_t op;
  std::int64_t ready;
  std::int64_t free;
  std::uint32_t holder;
};

/// More than lanes can use are never held.
std::uint32_t LinkTable::slots_of(const Plan& plan, ResourceId resource) {
  return std::min(plan.resources[index(resource)].capacity,
                  static_cast<std::uint32_t>(plan.lanes.size()));
}

LinkTable::Layout LinkTable::layout(const Plan& plan) {
  const auto aligned = [](std::size_t at) { return (at + 63) / 64 * 64; };
  Layout places{};
  places.resources = aligned(sizeof(Mutex));
  places.slots = aligned(places.resources + sizeof(Resource) * plan.resources.size());
  std::size_t slots = 0;
  for (std::size_t i = 0; i < plan.resources.size(); ++i)
    slots += slots_of(plan, ResourceId{static_cast<std::uint32_t>(i)});
  places.waiters = aligned(places.slots + sizeof(Slot) * slots);
  places.end = aligned(places.waiters + sizeof(Waiter) * plan.lanes.size());
  return places;
}

std::size_t LinkTable::bytes(const Plan& plan) { return layout(plan).end; }

LinkTable::LinkTable(const Plan& plan, std::byte* memory, bool make)
    : plan_{plan},
      mutex_{reinterpret_cast<Mutex*>(memory)},
      resources_{reinterpret_cast<Resource*>(memory + layout(plan).resources)},
      slots_{reinterpret_cast<Slot*>(memory + layout(plan).slots)},
      waiters_{reinterpret_cast<Waiter*>(memory + layout(plan).waiters)},
      claimed_(plan.resources.size()) {
  for (std::size_t i = 0, first = 0; i < plan.resources.size(); ++i) {
    const ResourceId resource{static_cast<std::uint32_t>(i)};
    first_slot_.push_back(first);
    first += slots_of(plan, resource);
  }
  if (make) mutex_->make();
}

std::span<LinkTable::Slot> LinkTable::slots(ResourceId resource) const {
  return {slots_ + first_slot_[index(resource)], slots_of(plan_, resource)};
}

void LinkTable::request(OpId send, TimePoint ready, std::vector<OpId>& granted) {
  const Lock lock{*mutex_};
  Waiter& waiter = waiters_[index(plan_.op(send).lane)];
  waiter.op = static_cast<std::uint32_t>(send);
  waiter.ready = ready.count();
  waiter.state.store(Waiter::waiting);
  grant_what_is_free(granted);
}

bool LinkTable::take(LaneId lane, Grant& grant) {
  Waiter& waiter = waiters_[index(lane)];
  if (waiter.state.load() != Waiter::granted) return false;
  grant = {TimePoint{waiter.free}, OpId{waiter.holder}};
  waiter.state.store(Waiter::none);
  return true;
}

void LinkTable::release(OpId send, TimePoint due, std::vector<OpId>& granted) {
  const Lock lock{*mutex_};
  for (const ResourceId id : plan_.resources_of(send)) {
    --resources_[index(id)].used;
    for (Slot& slot : slots(id)) {
      if (slot.held == 0 || slot.holder != static_cast<std::uint32_t>(send)) continue;
      slot.held = 0;
      slot.free = due.count();
    }
  }
  grant_what_is_free(granted);
}

/// A grant gives the next in a stated order its turn, which may stand before it here: so anew
/// until no op gets anything.
void LinkTable::grant_what_is_free(std::vector<OpId>& granted) {
  order_.clear();
  for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane)
    if (waiters_[lane].state.load() == Waiter::waiting) order_.push_back(lane);
  std::ranges::sort(order_, {}, [&](std::size_t lane) {
    return std::tuple{waiters_[lane].ready, waiters_[lane].op};
  });
  for (std::size_t before = granted.size() + 1; before != granted.size();) {
    before = granted.size();
    claimed_.assign(claimed_.size(), false);
    for (const std::size_t lane : order_) grant(waiters_[lane], granted);
  }
}

void LinkTable::grant(Waiter& waiter, std::vector<OpId>& granted) {
  const OpId send{waiter.op};
  if (waiter.state.load() != Waiter::waiting || !is_turn(send)) return;
  if (is_free(send)) {
    hand_over(waiter);
    granted.push_back(send);
  } else {
    for (const ResourceId id : plan_.resources_of(send)) claimed_[index(id)] = true;
  }
}

bool LinkTable::is_turn(OpId send) const {
  return std::ranges::all_of(plan_.resources_of(send), [&](ResourceId id) {
    const auto& order = plan_.resources[index(id)].order;
    // Every user has its turn once in an iteration.
    return order.empty() || order[resources_[index(id)].turn % order.size()] == send;
  });
}

bool LinkTable::is_free(OpId send) const {
  return std::ranges::all_of(plan_.resources_of(send), [&](ResourceId id) {
    return !claimed_[index(id)] && resources_[index(id)].used < slots(id).size();
  });
}

void LinkTable::hand_over(Waiter& waiter) {
  waiter.free = 0;
  waiter.holder = static_cast<std::uint32_t>(kNone<OpId>);
  for (const ResourceId id : plan_.resources_of(OpId{waiter.op})) {
    Resource& resource = resources_[index(id)];
    ++resource.used;
    ++resource.turn;
    // It takes the place that has been free for longest, as the simulator does.
    Slot* place = nullptr;
    for (Slot& slot : slots(id))
      if (slot.held == 0 && (place == nullptr || slot.free < place->free)) place = &slot;
    LONGHAUL_ASSERT(place != nullptr, "{} has no place", plan_.resources[index(id)].name);
    if (place->free > waiter.free) {
      waiter.free = place->free;
      waiter.holder = place->holder;
    }
    place->held = 1;
    place->holder = waiter.op;
  }
  waiter.state.store(Waiter::granted);
}

}  // namespace longhaul::engine
