#include "runtime/engine/link_table.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <tuple>

#include <pthread.h>

#include "base/error.hpp"

namespace longhaul {

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
  std::uint32_t last_holder;
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

LinkTable::Layout LinkTable::layout(const Plan& plan) {
  const auto aligned = [](std::size_t at) { return (at + 63) / 64 * 64; };
  Layout places{};
  places.resources = aligned(sizeof(Mutex));
  places.waiters = aligned(places.resources + sizeof(Resource) * plan.resources.size());
  places.end = aligned(places.waiters + sizeof(Waiter) * plan.lanes.size());
  return places;
}

std::size_t LinkTable::bytes(const Plan& plan) { return layout(plan).end; }

LinkTable::LinkTable(const Plan& plan, std::byte* memory, bool make)
    : plan_{plan},
      mutex_{reinterpret_cast<Mutex*>(memory)},
      resources_{reinterpret_cast<Resource*>(memory + layout(plan).resources)},
      waiters_{reinterpret_cast<Waiter*>(memory + layout(plan).waiters)},
      claimed_(plan.resources.size()) {
  if (make) mutex_->make();
}

void LinkTable::request(OpId send, TimePoint ready) {
  const Lock lock{*mutex_};
  Waiter& waiter = waiters_[index(plan_.op(send).lane)];
  waiter.op = static_cast<std::uint32_t>(send);
  waiter.ready = ready.count();
  waiter.state.store(Waiter::waiting);
  grant_what_is_free(nullptr);
}

bool LinkTable::take(LaneId lane, Grant& grant) {
  Waiter& waiter = waiters_[index(lane)];
  if (waiter.state.load() != Waiter::granted) return false;
  grant = {TimePoint{waiter.free}, OpId{waiter.holder}};
  waiter.state.store(Waiter::none);
  return true;
}

void LinkTable::release(OpId send, TimePoint due, std::vector<OpId>& woken) {
  const Lock lock{*mutex_};
  for (const ResourceId id : plan_.resources_of(send)) {
    Resource& resource = resources_[index(id)];
    --resource.used;
    if (due.count() < resource.free) continue;
    resource.free = due.count();
    resource.last_holder = static_cast<std::uint32_t>(send);
  }
  grant_what_is_free(&woken);
}

void LinkTable::grant_what_is_free(std::vector<OpId>* woken) {
  order_.clear();
  for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane)
    if (waiters_[lane].state.load() == Waiter::waiting) order_.push_back(lane);
  std::ranges::sort(order_, {}, [&](std::size_t lane) {
    return std::tuple{waiters_[lane].ready, waiters_[lane].op};
  });
  claimed_.assign(claimed_.size(), false);
  for (const std::size_t lane : order_) {
    const OpId send{waiters_[lane].op};
    if (!is_turn(send)) continue;
    if (is_free(send)) {
      hand_over(waiters_[lane]);
      if (woken != nullptr) woken->push_back(send);
    } else {
      for (const ResourceId id : plan_.resources_of(send)) claimed_[index(id)] = true;
    }
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
    return !claimed_[index(id)] && resources_[index(id)].used < plan_.resources[index(id)].capacity;
  });
}

void LinkTable::hand_over(Waiter& waiter) {
  waiter.free = 0;
  waiter.holder = static_cast<std::uint32_t>(kNone<OpId>);
  for (const ResourceId id : plan_.resources_of(OpId{waiter.op})) {
    Resource& resource = resources_[index(id)];
    ++resource.used;
    ++resource.turn;
    if (resource.free <= waiter.free) continue;
    waiter.free = resource.free;
    waiter.holder = resource.last_holder;
  }
  waiter.state.store(Waiter::granted);
}

}  // namespace longhaul
