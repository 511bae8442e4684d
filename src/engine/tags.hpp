#pragma once

#include <cstdint>
#include <vector>

#include "engine/links/lease_words.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {

/// Tags of the engine's messages. Every message of an iteration has its own (while the transport's
/// tags last: then they repeat, and order keeps messages apart), so that receives may be posted in
/// any order.
class Tags {
public:
  Tags(const Plan& plan, int ranks, int tags) : tags_{static_cast<std::uint32_t>(tags - 2)} {
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const OpRange ops = ops_of_rank(plan, Rank{rank});
      first_op_.push_back(ops.first);
      ops_.push_back(ops.count);
    }
  }
  /// Tags of the message that op `send` of rank `from` sends: its header, its payload, and the
  /// receiver's word that it is ready. Of a stream, those of some iterations have their own: one
  /// that waits for its window may be passed by the next.
  [[nodiscard]] int header(Rank from, OpId send, int iteration = 0) const {
    return tag(0, place(from, send, iteration));
  }
  [[nodiscard]] int payload(Rank from, OpId send, int iteration = 0) const {
    return tag(1, place(from, send, iteration));
  }
  [[nodiscard]] int go_ahead(Rank from, OpId send, int iteration = 0) const {
    return tag(2, place(from, send, iteration));
  }
  /// Tag of the barrier of the members of collective `number`; 0 is all ranks at the start of an
  /// iteration, 1 at its end.
  [[nodiscard]] int barrier(std::uint32_t number) const { return tag(3, number); }
  /// Tag of what a StreamControl says: plans that have one have no collectives.
  [[nodiscard]] int control() const { return barrier(2); }
  /// Words on leases, to the home and from it: tags of their own, for their receives are posted
  /// ahead.
  [[nodiscard]] LeaseWords::Tags leases() const {
    return {static_cast<int>(tags_), static_cast<int>(tags_) + 1};
  }

private:
  [[nodiscard]] std::uint32_t place(Rank from, OpId send, int iteration) const {
    return static_cast<std::uint32_t>(index(send)) - first_op_[index(from)] +
           ops_[index(from)] * (static_cast<std::uint32_t>(iteration) % kIterations);
  }
  [[nodiscard]] int tag(std::uint32_t kind, std::uint32_t number) const {
    return static_cast<int>((4 * number + kind) % (tags_ / 4 * 4));
  }
  static constexpr std::uint32_t kIterations = 16;
  std::uint32_t tags_;
  std::vector<std::uint32_t> first_op_, ops_;  ///< index: rank
};

}  // namespace longhaul::engine
