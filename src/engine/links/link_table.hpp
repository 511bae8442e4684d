#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "base/clock.hpp"
#include "engine/credit/shadow_time.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {

/// Holders of a plan's resources and the ops that wait for them, in one block of memory: the rank's
/// own for what it alone uses, the host's for what several of its ranks share. Serves in order of
/// readiness (ties: op id), or in the stated order. An op that is served takes all its resources
/// together as soon as they are free: until then it keeps a place on each of them, which no op that
/// is served later takes. A lane may ask for several ops; they are served in turn.
///
/// Who asks may be served at once (request()): among those that wait the order then changes with
/// each that asks. Or all that ask in an instant wait for its end (ask()), and are then served one
/// by one (first_request(), serve()): the order is then exactly the simulator's.
class LinkTable {
public:
  /// With room for the sends of all ranks, or of one.
  [[nodiscard]] static std::size_t bytes(const Plan& plan, Rank only = kNone<Rank>);
  /// `memory` is zeroed and lasts as long as the table; `make` true for one of those who share it,
  /// before the others use it.
  LinkTable(const Plan& plan, std::byte* memory, bool make, Rank only = kNone<Rank>);

  /// Asks for the resources of a send; adds ops that are granted theirs to `granted`: this one, or
  /// others whose turn comes after it. Call take() next.
  void request(OpId send, TimePoint ready, std::vector<OpId>& granted);
  struct Grant {
    TimePoint free{};           ///< when the last of them was let go; 0 when they were free before
    OpId holder = kNone<OpId>;  ///< who let go of it
    ShadowTime let_go{};        ///< when all of them were, as it was seen; of stated orders nothing
  };
  /// The grant of a send that has asked, if it has been made.
  [[nodiscard]] bool take(OpId send, Grant& grant);
  /// Lets go, as of `due`, which was `seen` later; adds ops that are granted theirs thereby to
  /// `granted`.
  void release(OpId send, TimePoint due, std::vector<OpId>& granted, const ShadowTime& seen = {});

  /// Asks to be served later.
  void ask(OpId send, TimePoint ready);
  /// The first of those to be served: none of another lane whose turn it is was ready before it.
  [[nodiscard]] std::optional<Arbiter::Request> first_request(LaneId lane) const;
  /// Serves it; as request() otherwise.
  void serve(OpId send, std::vector<OpId>& granted);

private:
  struct Head;
  struct Resource;
  struct Slot;
  struct Waiter;
  struct Queue;
  struct Layout {
    std::size_t resources, slots, queues, waiters, end;
  };
  static Layout layout(const Plan& plan, Rank only);
  static std::uint32_t slots_of(const Plan& plan, ResourceId resource);
  static std::uint32_t waiters_of(const Lane& lane, Rank only);
  [[nodiscard]] std::span<Slot> slots(ResourceId resource) const;
  [[nodiscard]] Waiter& waiter_of(OpId send) const;
  [[nodiscard]] Queue& queue_of(OpId send) const;

  void enqueue(OpId send, TimePoint ready, std::uint32_t state);
  void grant_what_is_free(std::vector<OpId>& granted);
  void collect_waiting();
  void grant_or_claim(OpId send, std::vector<OpId>& granted);
  [[nodiscard]] bool is_turn(OpId send) const;
  [[nodiscard]] bool is_free(OpId send) const;
  void take_turn(OpId send, TimePoint served);
  [[nodiscard]] Slot* next_place(ResourceId resource) const;
  void hand_over(OpId send);

  const Plan& plan_;
  Head* head_;
  Resource* resources_;
  Slot* slots_;
  std::vector<std::size_t> first_slot_;  ///< index: resource
  Queue* queues_;                        ///< index: lane
  Waiter* waiters_;
  std::vector<std::size_t> first_waiter_;  ///< index: lane
  bool has_orders_ = false;                ///< some resource has a stated order
  std::vector<std::uint32_t> claimed_;     ///< index: resource; places kept, while it is granted
  /// Who waits: its place among the served, since when it is ready, its turn.
  std::vector<std::tuple<std::uint32_t, std::int64_t, std::uint32_t, OpId>> order_;
};

}  // namespace longhaul::engine
