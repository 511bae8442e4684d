#pragma once

#include <optional>
#include <vector>

#include "base/index.hpp"
#include "base/result.hpp"
#include "plan/lowering/collectives.hpp"
#include "plan/lowering/lanes.hpp"
#include "plan/lowering/messages.hpp"
#include "plan/lowering/part_lowering.hpp"
#include "plan/lowering/relay_lowering.hpp"
#include "plan/network/network.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// The treatment of a DP-cell's messages that leave their datacenter.
enum class Crossing { alone, relayed, pooled };

/// Lays out lanes, then fills in ops. Ids: rank by rank, and within a rank lane by lane (compute,
/// sends by peer, receives by peer, collectives), so that a lane is a range of ids.
class Lowering {
public:
  /// All outlive this. `time_alone`: see lower().
  Lowering(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
           Crossing crossing, const TimeAlone& time_alone, const PartExchanges& exchanges = {});
  /// Refused as try_lower() is, for links and turns.
  Result<Plan> run();

private:
  /// The tensor ranks of one place of each stage of a replica, from which messages go to those of
  /// the same place.
  struct Pipeline {
    ReplicaId replica{};
    int tensor = 0;
  };
  [[nodiscard]] Rank rank_of(const Pipeline& pipeline, DeviceId device) const {
    return scenario_.rank(pipeline.replica, device, pipeline.tensor);
  }
  void lower_services();
  /// Pipelines whose ranks have consecutive numbers: those of a DP-cell, where replicas run
  /// slowest.
  [[nodiscard]] std::vector<std::vector<Pipeline>> batches() const;
  /// A cell's ranks relay for each other: all lanes of a batch come first.
  [[nodiscard]] std::optional<Refusal> lower_batch(std::vector<Pipeline> pipelines);
  [[nodiscard]] std::optional<Refusal> arrange_messages();
  [[nodiscard]] const Messages& messages(ReplicaId replica) const {
    return messages_[messages_.size() == 1 ? 0 : index(replica)];
  }
  [[nodiscard]] const schedule::BlockCosts& costs(ReplicaId replica) const {
    return costs_[costs_.size() == 1 ? 0 : index(replica)];
  }
  [[nodiscard]] CellMessages messages_of(int cell) const;
  [[nodiscard]] bool relayed(const Messages::Channel& channel) const {
    return relays_ && relays_->carries(channel);
  }
  [[nodiscard]] bool grouped() const { return plan_.arrangement == Arrangement::grouped; }
  /// One allocation each, for a large plan must not hold twice what it needs.
  void reserve();
  // `local`: index into the batch.
  void lay_out_lanes();
  void lay_out_lanes(int local, DeviceId device);
  [[nodiscard]] OpId compute_at(const Pipeline& pipeline, DeviceId device,
                                std::int32_t position) const {
    return op_at(plan_, compute_lane_[index(rank_of(pipeline, device))], at(position));
  }
  Waits waits_of(int local, DeviceId device) const;
  void fill_compute(int local, DeviceId device);
  Route route_of(const Pipeline& pipeline, const Messages::Channel& channel);
  void fill_channel(int local, std::size_t c);

  const Schedule& schedule_;
  const Scenario& scenario_;
  Crossing crossing_;
  std::vector<schedule::BlockCosts> costs_;  ///< of each replica, or of all
  Plan plan_;
  Network network_;
  CollectiveLowering collectives_;
  PartLowering parts_;
  std::vector<Messages> messages_;    ///< of each replica, or one that all of them have
  std::vector<LaneId> compute_lane_;  ///< of each rank
  std::vector<Pipeline> batch_;       ///< of a cell: by LocalDPRank
  std::vector<std::vector<LaneId>> send_lane_, recv_lane_;  ///< by pipeline of the batch, channel
  std::optional<RelayLowering> relays_;                     ///< where they carry messages
};

/// A lane of messages in lower_pooled(): where the channel leaves its datacenter, the way of
/// all its cell's nodes together, held by one message at a time.
[[nodiscard]] Route pooled_route(const Schedule& schedule, const Scenario& scenario,
                                 ReplicaId replica, const Messages::Channel& channel,
                                 Network& network);

/// Puts the messages of each channel into the order of its cell's turns, where they are stated: a
/// lane that kept another one would block the cell. `messages` has an entry for each replica.
/// Refused where the turns are not what they should be: see TurnTable.
[[nodiscard]] std::optional<Refusal> order_by_turns(const Schedule& schedule,
                                                    std::vector<Messages>& messages);

/// The treatment of the turns of DP-cells (turns_name()).
enum class Turns : std::uint8_t {
  ordered,  ///< each is a resource of the plan, as any other
  taken,    ///< the order of the plan's lanes says it already
};

/// States the orders that a schedule gives for shared links and interfaces in the plan's resources.
/// They name whole messages: one that travels in pieces takes its place with all of those that hold
/// the resource, one after the other. Refused where one names an unknown resource or message, or
/// leaves out a user.
[[nodiscard]] std::optional<Refusal> apply_link_orders(Plan& plan, const Schedule& schedule,
                                                       Turns turns);

}  // namespace longhaul::plan
