#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "plan/network/network.hpp"
#include "plan/plan.hpp"
#include "plan/steps/collective_steps.hpp"

namespace longhaul::plan {

/// Puts the messages of collectives into a plan: lays out their lanes rank by rank, then fills in
/// their ops. A rank has a lane for each peer and stream, so that nothing but its own messages
/// before it, its data and the network hold a message up; its next collective of the same queue
/// begins there when its part of the one before has ended.
///
///     StepLowering steps{plan, network};
///     steps.add(gather, ChunkId{3});
///     for (const Rank rank : ranks) steps.lay_out(rank);  // between the rank's other lanes
///     for (const Rank rank : gather.members) steps.gate(0, rank, block);  // begins after it
///     steps.fill();
class StepLowering {
public:
  /// What gates hold up at a rank: what it sends, or what comes in too, as where a rank that has
  /// not begun a collective has no room for it.
  enum class Gates : std::uint8_t { sends, both_sides };
  StepLowering(Plan& plan, Network& network, Gates gates = Gates::sends)
      : plan_{plan}, network_{network}, gates_{gates} {}

  /// Appends the collective to Plan::stepped. All of a rank's collectives of one `queue` are run in
  /// this order; those of others have lanes of their own. `collective` must have steps
  /// (why_no_steps()).
  void add(const Collective& collective, ChunkId chunk, int queue = 0);
  [[nodiscard]] bool empty() const { return collectives_.empty(); }
  /// Ops of all collectives.
  [[nodiscard]] std::size_t ops() const;
  /// Adds the lanes of a rank, sends first. Once for each rank, before fill().
  void lay_out(Rank rank);
  /// The rank's first messages of the collective wait for `before`, too.
  void gate(std::size_t collective, Rank rank, OpId before);
  /// What the rank gets of the collective has come when these have ended. After lay_out().
  [[nodiscard]] std::vector<OpId> receives_at(std::size_t collective, Rank rank) const;
  /// The last of these in each lane: fewer, and they say the same.
  [[nodiscard]] std::vector<OpId> arrivals_at(std::size_t collective, Rank rank) const;
  /// The ops of a rank after which its part of the collective has ended: those that no other of its
  /// ops waits for. After lay_out().
  [[nodiscard]] std::vector<OpId> last_ops(std::size_t collective, Rank rank) const;
  void fill();

private:
  struct MessageRef {
    std::uint32_t collective, message;
  };
  struct Adding {
    std::vector<std::vector<std::uint32_t>> sends, receives;  ///< messages, by member
    std::vector<std::uint8_t> waited_for;             ///< by message: by one of its receiver's
    std::vector<std::uint8_t> followed;               ///< by message: by another of its sender's
    std::map<std::int32_t, std::vector<OpId>> gates;  ///< by member
    int queue = 0;
  };
  using Key = std::tuple<CollectiveKind, std::size_t, std::int64_t, CollectiveAlgorithm,
                         std::vector<int>, std::vector<int>, std::vector<CollectiveAlgorithm>, int>;

  [[nodiscard]] std::shared_ptr<const CollectiveSteps> steps_for(const Collective& collective);
  [[nodiscard]] const StepMessage& message(MessageRef ref) const {
    return plan_.stepped[ref.collective].steps->messages[ref.message];
  }
  [[nodiscard]] Rank rank_of(MessageRef ref, std::int32_t member) const {
    return plan_.stepped[ref.collective].collective.members[at(member)];
  }
  void lay_out_side(Rank rank, OpKind kind);
  void fill_message(MessageRef ref);
  void add_waits(MessageRef ref);
  /// A rank's first messages of a collective wait for the end of its part of the one before.
  void gate_by_order();
  [[nodiscard]] std::int32_t place_of(std::size_t collective, Rank rank) const;
  /// Where gates are of both sides: the first receive of each lane waits for them.
  void gate_receives(std::uint32_t collective);

  Plan& plan_;
  Network& network_;
  Gates gates_;
  std::vector<Adding> collectives_;
  std::map<Key, std::shared_ptr<const CollectiveSteps>> known_;
  std::map<Rank, std::vector<MessageRef>> sends_, receives_;  ///< by rank
  std::map<LaneId, Route> route_of_;                          ///< of lanes of sends
};

}  // namespace longhaul::plan
