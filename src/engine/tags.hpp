#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::engine {

/// Tags of the engine's messages. Every message of an iteration has its own (while the transport's
/// tags last: then they repeat, and order keeps messages apart), so that receives may be posted in
/// any order.
class Tags {
public:
  Tags(const Plan& plan, int ranks, int tags) : tags_{static_cast<std::uint32_t>(tags)} {
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      first_op_.push_back(ops_of_rank(plan, Rank{rank}).first);
  }
  /// Tags of the message that op `send` of rank `from` sends: its header, its payload, and the
  /// receiver's word that it is ready.
  [[nodiscard]] int header(Rank from, OpId send) const { return tag(0, place(from, send)); }
  [[nodiscard]] int payload(Rank from, OpId send) const { return tag(1, place(from, send)); }
  [[nodiscard]] int go_ahead(Rank from, OpId send) const { return tag(2, place(from, send)); }
  /// Tag of the barrier of the members of collective `number`; 0 is all ranks at the start of an
  /// iteration, 1 at its end.
  [[nodiscard]] int barrier(std::uint32_t number) const { return tag(3, number); }

private:
  [[nodiscard]] std::uint32_t place(Rank from, OpId send) const {
    return static_cast<std::uint32_t>(index(send)) - first_op_[index(from)];
  }
  [[nodiscard]] int tag(std::uint32_t kind, std::uint32_t number) const {
    return static_cast<int>((4 * number + kind) % (tags_ / 4 * 4));
  }
  std::uint32_t tags_;
  std::vector<std::uint32_t> first_op_;  ///< index: rank
};

}  // namespace longhaul::engine
