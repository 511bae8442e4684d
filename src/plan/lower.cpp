#include "plan/lower.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "plan/collectives.hpp"
#include "plan/link_orders.hpp"
#include "plan/messages.hpp"
#include "plan/network.hpp"
#include "schedule/block_costs.hpp"

namespace longhaul {
namespace {

/// Lays out lanes, then fills in ops. Ids: rank by rank, and within a rank lane by lane (compute,
/// sends by peer, receives by peer, collectives), so that a lane is a range of ids.
class Lowering {
public:
  Lowering(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement)
      : schedule_{schedule},
        scenario_{scenario},
        costs_{schedule, scenario},
        network_{scenario, plan_} {
    plan_.schedule = schedule.name;
    plan_.arrangement = arrangement;
    plan_.stages = schedule.devices;
    plan_.replicas = schedule.replicas;
    plan_.microbatches = schedule.microbatches;
    for (const Datacenter& datacenter : scenario.datacenters)
      plan_.datacenters.push_back(datacenter.name);
    collectives_ = find_collectives(schedule, scenario, network_);
  }

  Plan run() {
    reserve();
    for (int replica = 0; replica < schedule_.replicas; ++replica) {
      if (replica == 0 || !schedule_.replicas_alike()) messages_ = arranged_messages(replica);
      lay_out_lanes(replica);
      for (int device = 0; device < schedule_.devices; ++device) fill_compute(replica, device);
      for (std::size_t c = 0; c < messages_.channels.size(); ++c) fill_channel(replica, c);
    }
    fill_collectives(plan_, schedule_, collectives_, collective_lane_, network_);
    apply_link_orders(plan_, schedule_);
    return std::move(plan_);
  }

private:
  /// One allocation each, for a large plan must not hold twice what it needs.
  void reserve() {
    std::size_t blocks = 0;
    std::size_t messages = 0;
    for (int replica = 0; replica < schedule_.replicas; ++replica) {
      if (replica == 0 || !schedule_.replicas_alike()) messages_ = arranged_messages(replica);
      for (int device = 0; device < schedule_.devices; ++device)
        blocks += schedule_.row(replica, device).size();
      messages += messages_.all.size();
    }
    std::size_t collectives = 0;
    for (const auto& mine : collectives_)
      collectives += mine.size() * static_cast<std::size_t>(schedule_.replicas);
    plan_.ops.reserve(blocks + 2 * messages + collectives);
    // A block waits for its input, a send for its producer, a grouped receive for the block before.
    plan_.after.reserve((grouped() ? 3 : 2) * messages + 2 * collectives);
  }

  [[nodiscard]] bool grouped() const { return plan_.arrangement == Arrangement::grouped; }

  Messages arranged_messages(int replica) const {
    Messages messages = find_messages(schedule_, replica);
    if (grouped()) arrange_groups(messages);
    return messages;
  }

  LaneId add_lane(std::string name, LaneKind kind, Rank rank, Rank peer, std::size_t count) {
    const auto first = static_cast<std::uint32_t>(plan_.ops.size());
    const LaneId id{static_cast<std::uint32_t>(plan_.lanes.size())};
    plan_.lanes.push_back(
        {std::move(name), kind, rank, peer, OpId{first}, static_cast<std::uint32_t>(count)});
    Op op;
    op.lane = id;
    op.peer = peer;
    plan_.ops.resize(plan_.ops.size() + count, op);
    return id;
  }

  void lay_out_lanes(int replica) {
    const auto rank_of = [&](int device) { return scenario_.rank(replica, device); };
    send_lane_.resize(messages_.channels.size());
    recv_lane_.resize(messages_.channels.size());
    compute_lane_.clear();
    for (int device = 0; device < schedule_.devices; ++device) {
      const Rank rank = rank_of(device);
      plan_.ranks.push_back({replica, device, scenario_.datacenter_of(rank)});
      compute_lane_.push_back(add_lane("compute", LaneKind::compute, rank, kNone<Rank>,
                                       schedule_.row(replica, device).size()));
      for (std::size_t c = 0; c < messages_.channels.size(); ++c) {
        const auto& channel = messages_.channels[c];
        if (channel.from != device) continue;
        const Rank peer = rank_of(channel.to);
        send_lane_[c] = add_lane(fmt::format("send>{}", index(peer)), LaneKind::send, rank, peer,
                                 channel.count);
      }
      for (std::size_t c = 0; c < messages_.channels.size(); ++c) {
        const auto& channel = messages_.channels[c];
        if (channel.to != device) continue;
        const Rank peer = rank_of(channel.from);
        recv_lane_[c] = add_lane(fmt::format("recv<{}", index(peer)), LaneKind::recv, rank, peer,
                                 channel.count);
      }
      const auto& mine = collectives_[static_cast<std::size_t>(device)];
      collective_lane_.push_back(mine.empty() ? kNone<LaneId>
                                              : add_lane("collective", LaneKind::collective, rank,
                                                         kNone<Rank>, mine.size()));
    }
  }

  /// Id of the op at `position` of a lane.
  [[nodiscard]] OpId at(LaneId lane, std::int64_t position) const {
    return OpId{static_cast<std::uint32_t>(
        static_cast<std::int64_t>(index(plan_.lanes[index(lane)].first)) + position)};
  }
  [[nodiscard]] OpId compute_at(int device, std::int32_t position) const {
    return at(compute_lane_[static_cast<std::size_t>(device)], position);
  }
  /// The two sides of message `i` of this replica.
  [[nodiscard]] OpId side(const std::vector<LaneId>& lanes, std::size_t channel,
                          std::size_t i) const {
    return at(lanes[channel], static_cast<std::int64_t>(i) - messages_.channels[channel].first);
  }

  /// (row position, op): what the block at that position waits for, ordered by position.
  using Waits = std::vector<std::pair<std::int32_t, OpId>>;

  Waits waits_of(int device) const {
    Waits waits;
    for (std::size_t c = 0; c < messages_.channels.size(); ++c) {
      const auto& channel = messages_.channels[c];
      if (channel.to != device) continue;
      for (std::size_t i = channel.first; i < channel.first + channel.count; ++i) {
        const Message& m = messages_.all[i];
        waits.emplace_back(m.needed_before, side(recv_lane_, c, i));
      }
    }
    add_gathers(device, waits);
    std::ranges::sort(waits);
    return waits;
  }

  void add_gathers(int device, Waits& waits) const {
    const auto& mine = collectives_[static_cast<std::size_t>(device)];
    const int replica = plan_.ranks.back().replica;  // the one being filled
    const auto row = schedule_.row(replica, device);
    for (std::size_t k = 0; k < mine.size(); ++k) {
      if (mine[k].kind != CollectiveKind::all_gather) continue;
      const auto first = std::ranges::find_if(row, [&](const Block& block) {
        return block.kind == BlockKind::F && schedule_.stage_of(block.chunk) == mine[k].stage;
      });
      if (first == row.end()) continue;  // fewer microbatches than copies
      waits.emplace_back(static_cast<std::int32_t>(first - row.begin()),
                         at(collective_lane_[index(scenario_.rank(replica, device))],
                            static_cast<std::int64_t>(k)));
    }
  }

  void fill_compute(int replica, int device) {
    const auto row = schedule_.row(replica, device);
    const Waits waits = waits_of(device);
    const ResourceSetId resources = network_.device(scenario_.rank(replica, device));
    auto wait = waits.begin();
    for (std::size_t i = 0; i < row.size(); ++i) {
      Op& op = plan_.ops[index(compute_at(device, static_cast<std::int32_t>(i)))];
      set_block(op, row[i]);
      op.resources = resources;
      op.duration = costs_.duration(row[i]);
      op.size = costs_.memory(row[i]);
      for (; wait != waits.end() && wait->first == static_cast<std::int32_t>(i); ++wait)
        plan_.add_after(op, wait->second);
    }
  }

  static void set_block(Op& op, const Block& block) {
    op.block_kind = block.kind;
    op.part = block.part;
    op.parts = block.parts;
    op.chunk = block.chunk;
    op.microbatch = block.microbatch;
  }

  void fill_channel(int replica, std::size_t c) {
    const auto& channel = messages_.channels[c];
    const Route route =
        network_.route(scenario_.rank(replica, channel.from), scenario_.rank(replica, channel.to));
    for (std::size_t i = channel.first; i < channel.first + channel.count; ++i) {
      const Message& m = messages_.all[i];
      const OpId send_id = side(send_lane_, c, i);
      const OpId recv_id = side(recv_lane_, c, i);
      Op& send = plan_.ops[index(send_id)];
      Op& recv = plan_.ops[index(recv_id)];
      send.kind = OpKind::send;
      recv.kind = OpKind::recv;
      set_block(send, m.producer);
      set_block(recv, m.producer);
      send.match = static_cast<std::uint32_t>(recv_id);
      recv.match = static_cast<std::uint32_t>(send_id);
      send.resources = recv.resources = route.resources;
      send.size = recv.size = costs_.message(m.producer);
      send.duration = send.size / route.rate;
      recv.duration = route.latency;
      plan_.add_after(send, compute_at(m.from, m.sent_after));
      if (grouped() && m.posted_before > 0)
        plan_.add_after(recv, compute_at(m.to, m.posted_before - 1));
    }
  }

  const Schedule& schedule_;
  const Scenario& scenario_;
  BlockCosts costs_;
  Plan plan_;
  Network network_;
  std::vector<std::vector<ChunkCollective>> collectives_;  ///< of each device
  Messages messages_;                                      ///< of the replica being filled
  std::vector<LaneId> compute_lane_;                       ///< of each device of that replica
  std::vector<LaneId> send_lane_, recv_lane_;              ///< of each channel of that replica
  std::vector<LaneId> collective_lane_;  ///< of each rank; kNone where it has none
};

void check_shape(const Schedule& schedule, const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  if (schedule.devices != parallel.stages || schedule.replicas != parallel.replicas ||
      schedule.microbatches != parallel.microbatches) {
    fail(
        "schedule {} has {} devices, {} replicas, {} microbatches, the scenario {}, {}, {}. "
        "Generate it for this scenario, or set [parallel] to match.",
        schedule.name, schedule.devices, schedule.replicas, schedule.microbatches, parallel.stages,
        parallel.replicas, parallel.microbatches);
  }
}

}  // namespace

Plan lower(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement) {
  check_shape(schedule, scenario);
  return Lowering{schedule, scenario, arrangement}.run();
}

}  // namespace longhaul
