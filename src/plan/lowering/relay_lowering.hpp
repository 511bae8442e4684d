#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "plan/lowering/turns.hpp"
#include "plan/network/network.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// (row position, op): what the block at that position waits for.
using Waits = std::vector<std::pair<std::int32_t, OpId>>;

/// Arranges the messages of a DP-cell that leave their datacenter (Atlas section 4.3): a piece for
/// each pipeline of the cell, scattered by the sender inside its datacenter, sent over the WAN by
/// all of the cell's ranks of that device, gathered at the receiver. Lanes of rank (k, device):
///  - "wan>PEER": piece k of every message of the cell, in the order of the turns;
///  - "scatter>PEER": pieces of its own messages for the cell's other ranks. A device that sends to
///    several others has one such lane for all: ordered as its rank produces them;
///  - "gather>PEER": pieces of another's messages that came over the WAN, in the order of the
///    turns, and those of several senders as the receiver's blocks need them.
/// Every order keeps the turns, so that none of them can block what the turns let pass.
///
/// One cell at a time: begin(), then lanes of all its ranks, then fill() and append_waits().
class RelayLowering {
public:
  /// `compute_lanes`, by rank, must be there before fill().
  RelayLowering(const Schedule& schedule, const Scenario& scenario,
                const schedule::BlockCosts& costs, Plan& plan, Network& network,
                const std::vector<LaneId>& compute_lanes);

  /// Refused where the cell's turns are not what they should be: see TurnTable.
  [[nodiscard]] std::optional<Refusal> begin(const CellMessages& cell);
  /// Is the channel one that leaves its datacenter, so that relays carry its messages?
  [[nodiscard]] bool carries(const Messages::Channel& channel) const;
  void add_send_lanes(int local, DeviceId device);
  void add_recv_lanes(int local, DeviceId device);
  void fill();
  void append_waits(int local, DeviceId device, Waits& waits) const;
  /// Refused where turns are stated that no cell takes. Call after the last cell.
  [[nodiscard]] std::optional<Refusal> finish() const { return turns_.not_taken(); }

private:
  /// All messages of the cell from one device to another.
  struct Pair {
    DeviceId from{}, to{};
    std::vector<Turn> turns;
    std::vector<std::uint32_t> scatter_at, gather_at;  ///< by turn: position in the owner's lanes
  };
  /// Where a message stands among all that one rank scatters, or gathers.
  struct Place {
    std::int32_t row;  ///< it cannot be earlier, or later, than the block at this row position
    std::uint32_t pair, turn;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct SendLane {
    LaneId lane = kNone<LaneId>;
    Route route;
  };
  /// One piece's way, and the message that it belongs to.
  struct Piece {
    const Pair* pair;
    std::uint32_t turn;
    int owner, number;
    Bytes size;
  };

  void order_scatters();
  void order_gathers();
  void fill_piece(const Piece& piece);
  OpId fill_leg(MessageLeg leg, const SendLane& from, LaneId to, std::uint32_t position,
                const Piece& piece, OpId after);
  [[nodiscard]] SendLane add_send_lane(const char* what, Rank from, Rank to, std::size_t count);
  [[nodiscard]] LaneId add_recv_lane(const char* what, Rank from, Rank to, std::size_t count);

  [[nodiscard]] int pipelines() const { return cell_.replicas.count; }
  [[nodiscard]] Rank rank(int local, DeviceId device) const {
    return scenario_.rank(cell_.replicas[local], device);
  }
  [[nodiscard]] const Message& message(const Turn& turn) const {
    return cell_.of(turn.owner).all[turn.message];
  }
  [[nodiscard]] std::size_t slot(DeviceId device, int local) const {
    return index(device) * to_size(pipelines()) + to_size(local);
  }
  [[nodiscard]] std::size_t slot(DeviceId device, int from, int to) const {
    return slot(device, from) * to_size(pipelines()) + to_size(to);
  }
  [[nodiscard]] std::size_t wan(std::size_t pair, int local) const {
    return pair * to_size(pipelines()) + to_size(local);
  }

  const Schedule& schedule_;
  const Scenario& scenario_;
  const schedule::BlockCosts& costs_;
  Plan& plan_;
  Network& network_;
  const std::vector<LaneId>& compute_lanes_;
  TurnTable turns_;
  CellMessages cell_;
  std::vector<Pair> pairs_;                             ///< ordered by (from, to)
  std::vector<std::vector<Place>> scatters_, gathers_;  ///< by (device, owner)
  std::vector<SendLane> wan_send_;                      ///< by (pair, piece)
  std::vector<LaneId> wan_recv_;                        ///< by (pair, piece)
  std::vector<SendLane> scatter_send_, gather_send_;    ///< by (device, from, to)
  std::vector<LaneId> scatter_recv_, gather_recv_;      ///< by (device, from, to)
};

}  // namespace longhaul::plan
