#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "engine/payloads/data_plane.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {

/// The send of a rank that forwards the payload of a receive: the wan leg of a piece after its
/// scatter, its gather after its wan leg (MessageLeg). Every other send makes its payload.
class RelayTable {
public:
  RelayTable(const Plan& plan, Rank self);
  /// kNone: what the receive brings stays here.
  [[nodiscard]] OpId send_after(OpId recv) const { return find(send_of_, recv); }
  /// kNone: the send is not a relay's.
  [[nodiscard]] OpId recv_before(OpId send) const { return find(recv_of_, send); }

private:
  using Table = std::unordered_map<OpId, OpId>;
  [[nodiscard]] static OpId find(const Table& table, OpId id) {
    const auto found = table.find(id);
    return found == table.end() ? kNone<OpId> : found->second;
  }
  Table send_of_, recv_of_;
};

/// Payloads that this rank has received and not yet taken on. They are never made again: what a
/// relay got is what leaves it, right or wrong.
class RelayBuffers {
public:
  RelayBuffers(const Plan& plan, Rank self) : forwards{plan, self} {}

  struct Kept {
    Payload payload;
    bool came_wrong = false;
  };
  /// Keeps what `recv` brought for the send after it.
  void keep(OpId recv, Kept kept) { kept_[forwards.send_after(recv)] = std::move(kept); }
  /// Is it known that what that send takes on came wrong?
  [[nodiscard]] bool came_wrong(OpId send) const;
  /// Hands it to that send, once.
  [[nodiscard]] Kept take(OpId send);
  /// Drops what no send took in the iteration before.
  void begin_iteration() { kept_.clear(); }

  const RelayTable forwards;

private:
  std::unordered_map<OpId, Kept> kept_;  ///< by send
};

}  // namespace longhaul::engine
