#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {

/// Holders of a plan's resources and the ops that wait for them, in one block of memory: the rank's
/// own for what it alone uses, the host's for what several of its ranks share. Serves in order of
/// readiness (ties: op id), or in the stated order; an op takes all its resources together, and no
/// op overtakes on a resource that an earlier one waits for. A lane has one op waiting at most.
class LinkTable {
public:
  [[nodiscard]] static std::size_t bytes(const Plan& plan);
  /// `memory` is zeroed and lasts as long as the table; `make` true for one of those who share it,
  /// before the others use it.
  LinkTable(const Plan& plan, std::byte* memory, bool make);

  /// Asks for the resources of a send; adds ops that are granted theirs to `granted`: this one, or
  /// others whose turn comes after it. Call take() next.
  void request(OpId send, TimePoint ready, std::vector<OpId>& granted);
  struct Grant {
    TimePoint free{};           ///< when the last of them was let go; 0 when they were free before
    OpId holder = kNone<OpId>;  ///< who let go of it
  };
  /// The grant of the waiting op of `lane`, if it has been made.
  [[nodiscard]] bool take(LaneId lane, Grant& grant);
  /// Lets go, as of `due`; adds ops that are granted theirs thereby to `granted`.
  void release(OpId send, TimePoint due, std::vector<OpId>& granted);

private:
  struct Mutex;
  struct Resource;
  struct Slot;
  struct Waiter;
  class Lock;
  struct Layout {
    std::size_t resources, slots, waiters, end;
  };
  static Layout layout(const Plan& plan);
  static std::uint32_t slots_of(const Plan& plan, ResourceId resource);
  [[nodiscard]] std::span<Slot> slots(ResourceId resource) const;

  void grant_what_is_free(std::vector<OpId>& granted);
  void grant(Waiter& waiter, std::vector<OpId>& granted);
  [[nodiscard]] bool is_turn(OpId send) const;
  [[nodiscard]] bool is_free(OpId send) const;
  void hand_over(Waiter& waiter);

  const Plan& plan_;
  Mutex* mutex_;
  Resource* resources_;
  Slot* slots_;
  std::vector<std::size_t> first_slot_;  ///< index: resource
  Waiter* waiters_;                      ///< index: lane
  std::vector<bool> claimed_;
  std::vector<std::size_t> order_;
};

}  // namespace longhaul::engine
