#pragma once

#include <optional>
#include <vector>

#include "base/index.hpp"
#include "base/result.hpp"
#include "plan/lowering/collectives.hpp"
#include "plan/lowering/lanes.hpp"
#include "plan/lowering/messages.hpp"
#include "plan/lowering/relay_lowering.hpp"
#include "plan/network/network.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// What becomes of the messages of a DP-cell that leave their datacenter.
enum class Crossing { alone, relayed, pooled };

/// Lays out lanes, then fills in ops. Ids: rank by rank, and within a rank lane by lane (compute,
/// sends by peer, receives by peer, collectives), so that a lane is a range of ids.
class Lowering {
public:
  Lowering(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
           Crossing crossing);
  /// Refused as try_lower() is, for links and turns.
  Result<Plan> run();

private:
  /// A cell's ranks relay for each other: all their lanes come first.
  [[nodiscard]] std::optional<Refusal> lower_cell(int cell);
  [[nodiscard]] std::optional<Refusal> arrange_messages();
  [[nodiscard]] const Messages& messages(ReplicaId replica) const {
    return messages_[messages_.size() == 1 ? 0 : index(replica)];
  }
  [[nodiscard]] CellMessages messages_of(int cell) const;
  [[nodiscard]] bool relayed(const Messages::Channel& channel) const {
    return relays_ && relays_->carries(channel);
  }
  [[nodiscard]] bool grouped() const { return plan_.arrangement == Arrangement::grouped; }
  /// One allocation each, for a large plan must not hold twice what it needs.
  void reserve();
  void lay_out_lanes(ReplicaId replica, int local);
  [[nodiscard]] OpId compute_at(ReplicaId replica, DeviceId device, std::int32_t position) const {
    return op_at(plan_, compute_lane_[index(scenario_.rank(replica, device))], at(position));
  }
  Waits waits_of(ReplicaId replica, int local, DeviceId device) const;
  void add_gathers(ReplicaId replica, DeviceId device, Waits& waits) const;
  void fill_compute(ReplicaId replica, int local, DeviceId device);
  Route route_of(ReplicaId replica, const Messages::Channel& channel);
  void fill_channel(ReplicaId replica, int local, std::size_t c);

  const Schedule& schedule_;
  const Scenario& scenario_;
  Crossing crossing_;
  BlockCosts costs_;
  Plan plan_;
  Network network_;
  IndexedVector<DeviceId, std::vector<ChunkCollective>> collectives_;  ///< of each device
  std::vector<Messages> messages_;    ///< of each replica, or one that all of them have
  std::vector<LaneId> compute_lane_;  ///< of each rank
  std::vector<std::vector<LaneId>> send_lane_, recv_lane_;  ///< by LocalDPRank, channel
  std::vector<LaneId> collective_lane_;  ///< of each rank; kNone where it has none
  std::optional<RelayLowering> relays_;  ///< where they carry messages
};

}  // namespace longhaul
