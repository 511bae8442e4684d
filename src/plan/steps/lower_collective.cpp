#include "plan/steps/lower_collective.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "base/index.hpp"
#include "plan/lowering/lanes.hpp"
#include "plan/network/network.hpp"

namespace longhaul::plan {
namespace {

/// Lays out lanes of one side of messages, then fills in ops.
class CollectiveLowering {
public:
  CollectiveLowering(const Collective& collective, const CollectiveSteps& steps,
                     const Scenario& scenario)
      : collective_{collective}, steps_{steps}, scenario_{scenario}, network_{scenario, plan_} {}

  Result<CollectivePlan> run() {
    plan_.schedule = to_text(collective_.kind);
    plan_.stages = scenario_.parallel.stages;
    plan_.replicas = scenario_.parallel.replicas;
    for (const Datacenter& datacenter : scenario_.datacenters)
      plan_.datacenters.push_back(datacenter.name);
    sends_ = by_side(&StepMessage::from, &StepMessage::to);
    receives_ = by_side(&StepMessage::to, &StepMessage::from);
    send_.resize(steps_.messages.size());
    receive_.resize(steps_.messages.size());
    plan_.ops.reserve(2 * steps_.messages.size());
    for (const ReplicaId replica : scenario_.replica_ids())
      for (const DeviceId device : scenario_.device_ids()) lay_out(replica, device);
    fill();
    if (network_.missing_link()) return *network_.missing_link();
    return CollectivePlan{std::move(plan_), std::move(send_), std::move(receive_)};
  }

private:
  using Side = std::int32_t StepMessage::*;

  /// The messages by rank, peer and stream, in their order.
  [[nodiscard]] std::vector<std::uint32_t> by_side(Side own, Side peer) const {
    std::vector<std::uint32_t> order(steps_.messages.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t m) { return key(m, own, peer); });
    return order;
  }
  [[nodiscard]] std::tuple<std::int32_t, std::int32_t, std::int32_t> key(std::uint32_t m, Side own,
                                                                         Side peer) const {
    const StepMessage& message = steps_.messages[m];
    return {message.*own, message.*peer, message.stream};
  }
  [[nodiscard]] Rank rank_of(std::int32_t member) const { return collective_.members[at(member)]; }

  void lay_out(ReplicaId replica, DeviceId device) {
    const Rank rank = scenario_.rank(replica, device);
    plan_.ranks.push_back({replica, device, scenario_.datacenter_of(rank)});
    add_lane(plan_, "compute", OpKind::compute, rank, kNone<Rank>, 0);
    lay_out_side(rank, OpKind::send, sends_, next_send_, send_);
    lay_out_side(rank, OpKind::recv, receives_, next_receive_, receive_);
  }

  /// The lanes of a rank on one side. Ranks come in ascending order, as members do.
  void lay_out_side(Rank rank, OpKind kind, const std::vector<std::uint32_t>& order,
                    std::size_t& next, std::vector<OpId>& op_of) {
    const bool sends = kind == OpKind::send;
    const Side own = sends ? &StepMessage::from : &StepMessage::to;
    const Side peer = sends ? &StepMessage::to : &StepMessage::from;
    while (next < order.size() && rank_of(steps_.messages[order[next]].*own) == rank) {
      std::size_t end = next;
      while (end < order.size() && key(order[end], own, peer) == key(order[next], own, peer)) ++end;
      const Rank other = rank_of(steps_.messages[order[next]].*peer);
      const LaneId lane =
          add_lane(plan_, fmt::format("{}{}", sends ? "send>" : "recv<", index(other)), kind, rank,
                   other, end - next);
      for (std::size_t i = next; i < end; ++i) op_of[order[i]] = op_at(plan_, lane, i - next);
      next = end;
    }
  }

  void fill() {
    Route route;
    LaneId lane = kNone<LaneId>;
    for (const std::uint32_t m : sends_) {
      const StepMessage& message = steps_.messages[m];
      const OpId send = send_[m];
      if (plan_.op(send).lane != lane) {
        lane = plan_.op(send).lane;
        route = network_.route(rank_of(message.from), rank_of(message.to));
      }
      join_sides(plan_, send, receive_[m],
                 Block{BlockKind::F, 0, 1, ChunkId{-1}, MicrobatchId{message.step}}, message.size,
                 route);
      for (const OpId side : {send, receive_[m]}) {
        Op& op = plan_.ops[index(side)];
        op.collective = collective_.kind;
        op.piece = static_cast<std::uint8_t>(message.piece);
        op.pieces = static_cast<std::uint8_t>(std::min(steps_.pieces, 255));
      }
      for (const std::uint32_t before : steps_.after_of(message))
        plan_.add_after(plan_.ops[index(send)], receive_[before]);
      for (const std::int32_t left : {message.left_before, message.left_of_piece})
        if (left >= 0) plan_.add_after(plan_.ops[index(send)], send_[at(left)]);
    }
  }

  const Collective& collective_;
  const CollectiveSteps& steps_;
  const Scenario& scenario_;
  Plan plan_;
  Network network_;
  std::vector<std::uint32_t> sends_, receives_;   ///< messages by rank, peer, stream
  std::size_t next_send_ = 0, next_receive_ = 0;  ///< laid out so far
  std::vector<OpId> send_, receive_;              ///< ops, by message
};

}  // namespace

Result<CollectivePlan> lower_collective(const Collective& collective, const CollectiveSteps& steps,
                                        const Scenario& scenario) {
  return CollectiveLowering{collective, steps, scenario}.run();
}

BytesByLevel bytes_by_level(const Collective& collective, const CollectiveSteps& steps,
                            const Scenario& scenario) {
  const schedule::NetworkRoutes routes{scenario};
  BytesByLevel bytes;
  for (const StepMessage& message : steps.messages) {
    const Rank from = collective.members[at(message.from)];
    const Rank to = collective.members[at(message.to)];
    switch (routes.level(from, to)) {
      case NetworkLevel::node: bytes.node += message.size; break;
      case NetworkLevel::datacenter: bytes.datacenter += message.size; break;
      case NetworkLevel::wan: bytes.wan += message.size; break;
    }
  }
  return bytes;
}

}  // namespace longhaul::plan
