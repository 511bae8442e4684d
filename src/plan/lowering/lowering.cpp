#include "plan/lowering/lowering.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"

namespace longhaul::plan {
namespace {

/// Sorts waits that lie in a few ascending runs, one of each channel: it merges them in pairs.
void merge_runs(Waits& waits) {
  std::vector<Waits::iterator> ends{waits.begin()};
  while (ends.back() != waits.end()) ends.push_back(std::is_sorted_until(ends.back(), waits.end()));
  while (ends.size() > 2) {
    std::vector<Waits::iterator> merged{ends.front()};
    for (std::size_t run = 1; run < ends.size(); run += 2) {
      const auto last = ends[std::min(run + 1, ends.size() - 1)];
      std::inplace_merge(ends[run - 1], ends[run], last);
      merged.push_back(last);
    }
    ends = std::move(merged);
  }
}

}  // namespace

Lowering::Lowering(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
                   Crossing crossing, const TimeAlone& time_alone)
    : schedule_{schedule},
      scenario_{scenario},
      crossing_{crossing},
      costs_{schedule, scenario},
      network_{scenario, plan_},
      collectives_{schedule, scenario, time_alone, plan_, network_} {
  plan_.schedule = schedule.name;
  plan_.arrangement = arrangement;
  plan_.stages = schedule.devices;
  plan_.replicas = schedule.replicas;
  plan_.microbatches = schedule.microbatches;
  plan_.cell = schedule.cell;
  for (const Datacenter& datacenter : scenario.datacenters)
    plan_.datacenters.push_back(datacenter.name);
  if (crossing == Crossing::relayed)
    relays_.emplace(schedule, scenario, costs_, plan_, network_, compute_lane_);
}

Result<Plan> Lowering::run() {
  if (network_.missing_link()) return *network_.missing_link();
  if (auto why = arrange_messages()) return *std::move(why);
  reserve();
  for (int cell = 0; cell * schedule_.cell < schedule_.replicas; ++cell)
    if (auto why = lower_cell(cell)) return *std::move(why);
  if (relays_)
    if (auto why = relays_->finish()) return *std::move(why);
  collectives_.fill(compute_lane_);
  if (network_.missing_link()) return *network_.missing_link();
  if (auto why = apply_link_orders(plan_, schedule_, relays_ ? Turns::taken : Turns::ordered))
    return *std::move(why);
  return std::move(plan_);
}

std::optional<Refusal> Lowering::lower_cell(int cell) {
  const CellReplicas replicas = cell_replicas(schedule_, cell);
  if (relays_)
    if (auto why = relays_->begin(messages_of(cell))) return why;
  send_lane_.assign(to_size(replicas.count), {});
  recv_lane_.assign(to_size(replicas.count), {});
  for (int local = 0; local < replicas.count; ++local) lay_out_lanes(replicas[local], local);
  if (relays_) relays_->fill();
  for (int local = 0; local < replicas.count; ++local) {
    const ReplicaId replica = replicas[local];
    for (const DeviceId device : schedule_.device_ids()) fill_compute(replica, local, device);
    for (std::size_t c = 0; c < messages(replica).channels.size(); ++c)
      fill_channel(replica, local, c);
  }
  return network_.missing_link();
}

std::optional<Refusal> Lowering::arrange_messages() {
  // In pooled plans a lane has the order of its cell's turns.
  const bool equal_replicas = schedule_.replicas_share_rows() && crossing_ != Crossing::pooled;
  for (const ReplicaId replica : ids<ReplicaId>(equal_replicas ? 1 : schedule_.replicas)) {
    messages_.push_back(replica > ReplicaId{0} && schedule_.replicas_share_rows()
                            ? messages_.front()
                            : find_messages(schedule_, replica));
    if (grouped()) arrange_groups(messages_.back());
  }
  return crossing_ == Crossing::pooled ? order_by_turns(schedule_, messages_) : std::nullopt;
}

CellMessages Lowering::messages_of(int cell) const {
  const CellReplicas replicas = cell_replicas(schedule_, cell);
  const std::span all{messages_};
  if (all.size() == 1) return {cell, replicas, all};
  return {cell, replicas, all.subspan(index(replicas.first), to_size(replicas.count))};
}

void Lowering::reserve() {
  std::size_t blocks = 0;
  std::size_t plain = 0;   // messages
  std::size_t pieces = 0;  // of relayed messages
  for (const ReplicaId replica : schedule_.replica_ids()) {
    for (const DeviceId device : schedule_.device_ids())
      blocks += schedule_.row(replica, device).size();
    const CellReplicas cell = cell_replicas(schedule_, schedule_.cell_of(replica));
    for (const auto& channel : messages(replica).channels) {
      const bool carried =
          relays_ && scenario_.datacenter_of(scenario_.rank(replica, channel.from)) !=
                         scenario_.datacenter_of(scenario_.rank(replica, channel.to));
      (carried ? pieces : plain) += channel.count * to_size(carried ? cell.count : 1);
    }
  }
  // A piece has at most three legs.
  plan_.ops.reserve(blocks + 2 * plain + 6 * pieces + collectives_.ops());
  // Blocks that wait for several: all pieces of their input, collectives.
  plan_.after.reserve(pieces + collectives_.waits());
}

void Lowering::lay_out_lanes(ReplicaId replica, int local) {
  const auto rank_of = [&](DeviceId device) { return scenario_.rank(replica, device); };
  const auto& channels = messages(replica).channels;
  auto& send_lane = send_lane_[at(local)];
  auto& recv_lane = recv_lane_[at(local)];
  send_lane.assign(channels.size(), kNone<LaneId>);
  recv_lane.assign(channels.size(), kNone<LaneId>);
  for (const DeviceId device : schedule_.device_ids()) {
    const Rank rank = rank_of(device);
    plan_.ranks.push_back(network_.info(replica, device));
    compute_lane_.push_back(add_lane(plan_, "compute", OpKind::compute, rank, kNone<Rank>,
                                     schedule_.row(replica, device).size()));
    for (std::size_t c = 0; c < channels.size(); ++c) {
      if (channels[c].from != device || relayed(channels[c])) continue;
      const Rank peer = rank_of(channels[c].to);
      send_lane[c] = add_lane(plan_, fmt::format("send>{}", index(peer)), OpKind::send, rank, peer,
                              channels[c].count);
    }
    if (relays_) relays_->add_send_lanes(local, device);
    for (std::size_t c = 0; c < channels.size(); ++c) {
      if (channels[c].to != device || relayed(channels[c])) continue;
      const Rank peer = rank_of(channels[c].from);
      recv_lane[c] = add_lane(plan_, fmt::format("recv<{}", index(peer)), OpKind::recv, rank, peer,
                              channels[c].count);
    }
    if (relays_) relays_->add_recv_lanes(local, device);
    collectives_.lay_out(rank, device);
  }
}

Waits Lowering::waits_of(ReplicaId replica, int local, DeviceId device) const {
  Waits waits;
  const Messages& mine = messages(replica);
  for (std::size_t c = 0; c < mine.channels.size(); ++c) {
    const auto& channel = mine.channels[c];
    if (channel.to != device || relayed(channel)) continue;
    const LaneId lane = recv_lane_[at(local)][c];
    for (std::size_t i = 0; i < channel.count; ++i)
      waits.emplace_back(mine.all[channel.first + i].needed_before, op_at(plan_, lane, i));
  }
  if (relays_) relays_->append_waits(local, device, waits);
  collectives_.append_waits(replica, device, waits);
  merge_runs(waits);
  return waits;
}

void Lowering::fill_compute(ReplicaId replica, int local, DeviceId device) {
  const auto row = schedule_.row(replica, device);
  const Waits waits = waits_of(replica, local, device);
  const ResourceSetId resources = network_.device(scenario_.rank(replica, device));
  auto wait = waits.begin();
  for (std::size_t i = 0; i < row.size(); ++i) {
    Op& op = plan_.ops[index(compute_at(replica, device, static_cast<std::int32_t>(i)))];
    set_block(op, row[i]);
    op.resources = resources;
    op.duration = costs_.duration(row[i]);
    op.size = costs_.memory(row[i]);
    for (; wait != waits.end() && wait->first == static_cast<std::int32_t>(i); ++wait)
      plan_.add_after(op, wait->second);
  }
}

Route Lowering::route_of(ReplicaId replica, const Messages::Channel& channel) {
  if (crossing_ == Crossing::pooled)
    return pooled_route(schedule_, scenario_, replica, channel, network_);
  return network_.route(scenario_.rank(replica, channel.from), scenario_.rank(replica, channel.to));
}

void Lowering::fill_channel(ReplicaId replica, int local, std::size_t c) {
  const auto& channel = messages(replica).channels[c];
  if (relayed(channel)) return;
  const Route route = route_of(replica, channel);
  for (std::size_t i = 0; i < channel.count; ++i) {
    const Message& m = messages(replica).all[channel.first + i];
    const OpId send = op_at(plan_, send_lane_[at(local)][c], i);
    const OpId recv = op_at(plan_, recv_lane_[at(local)][c], i);
    join_sides(plan_, send, recv, m.producer, costs_.message(m.producer), route);
    plan_.add_after(plan_.ops[index(send)], compute_at(replica, m.from, m.sent_after));
    if (grouped() && m.posted_before > 0)
      plan_.add_after(plan_.ops[index(recv)], compute_at(replica, m.to, m.posted_before - 1));
  }
}

}  // namespace longhaul::plan
