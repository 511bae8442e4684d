#pragma once

#include "comm/group/host_ranks.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {

/// The events of every op of a plan in the running iteration, as all ranks of a host can see it,
/// also when one of them is dead: one byte an op, written by its own rank; of another host's rank
/// by the one that leases it a link.
class OpEvents {
public:
  /// Collective over the ranks of this host.
  OpEvents(const Plan& plan, const comm::HostRanks& host_ranks)
      : memory_{host_ranks.host(), plan.ops.size() + 1} {}

  void note(OpId id, comm::OpEvent event) const {
    at(id).store(static_cast<std::uint8_t>(event), std::memory_order_relaxed);
  }
  [[nodiscard]] comm::OpEvent of(OpId id) const {
    return static_cast<comm::OpEvent>(at(id).load(std::memory_order_relaxed));
  }

private:
  using Cell = std::atomic<std::uint8_t>;
  static_assert(Cell::is_always_lock_free && sizeof(Cell) == 1);
  [[nodiscard]] Cell& at(OpId id) const {
    return reinterpret_cast<Cell*>(memory_.data())[index(id)];
  }
  comm::SharedMemory memory_;
};

/// An op that has not come about, and why: where a chain of ops that wait for each other begins.
struct HeldUp {
  OpId op{};
  const char* why = "";  ///< "sent, and never received"
};
/// Follows what `waits` waits for, from rank to rank of this host: messages, relays, lanes.
[[nodiscard]] HeldUp find_held_up(const Plan& plan, const OpEvents& events,
                                  const comm::HostRanks& host_ranks, OpId waits);

}  // namespace longhaul::engine
