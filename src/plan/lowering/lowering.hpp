#pragma once

#include <optional>
#include <vector>

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

/// The treatment of a DP-cell's messages that leave their datacenter.
enum class Crossing { alone, relayed, pooled };

/// Lays out lanes, then fills in ops. Ids: rank by rank, and within a rank lane by lane (compute,
/// sends by peer, receives by peer, collectives), so that a lane is a range of ids.
class Lowering {
public:
  Lowering(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
           Crossing crossing);
  Plan run();

private:
  /// A cell's ranks relay for each other: all their lanes come first.
  void lower_cell(int cell);
  void arrange_messages();
  [[nodiscard]] const Messages& messages(int replica) const {
    return messages_[messages_.size() == 1 ? 0 : static_cast<std::size_t>(replica)];
  }
  [[nodiscard]] CellMessages messages_of(int cell) const;
  [[nodiscard]] bool relayed(const Messages::Channel& channel) const {
    return relays_ && relays_->carries(channel);
  }
  [[nodiscard]] bool grouped() const { return plan_.arrangement == Arrangement::grouped; }
  /// One allocation each, for a large plan must not hold twice what it needs.
  void reserve();
  void lay_out_lanes(int replica, int local);
  [[nodiscard]] OpId compute_at(int replica, int device, std::int32_t position) const {
    return op_at(plan_, compute_lane_[index(scenario_.rank(replica, device))],
                 static_cast<std::size_t>(position));
  }
  Waits waits_of(int replica, int local, int device) const;
  void add_gathers(int replica, int device, Waits& waits) const;
  void fill_compute(int replica, int local, int device);
  Route route_of(int replica, const Messages::Channel& channel);
  void fill_channel(int replica, int local, std::size_t c);

  const Schedule& schedule_;
  const Scenario& scenario_;
  Crossing crossing_;
  BlockCosts costs_;
  Plan plan_;
  Network network_;
  std::vector<std::vector<ChunkCollective>> collectives_;  ///< of each device
  std::vector<Messages> messages_;    ///< of each replica, or one that all of them have
  std::vector<LaneId> compute_lane_;  ///< of each rank
  std::vector<std::vector<LaneId>> send_lane_, recv_lane_;  ///< by LocalDPRank, channel
  std::vector<LaneId> collective_lane_;  ///< of each rank; kNone where it has none
  std::optional<RelayLowering> relays_;  ///< where they carry messages
};

}  // namespace longhaul
