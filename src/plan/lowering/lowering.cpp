#include "plan/lowering/lowering.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/merge_runs.hpp"

namespace longhaul::plan {
Lowering::Lowering(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
                   Crossing crossing, const TimeAlone& time_alone, const PartExchanges& exchanges)
    : schedule_{schedule},
      scenario_{scenario},
      crossing_{crossing},
      costs_{schedule::costs_of_replicas(schedule, scenario)},
      network_{scenario, plan_},
      collectives_{schedule, scenario, time_alone, plan_, network_},
      parts_{schedule, scenario, exchanges, plan_, network_} {
  plan_.schedule = schedule.name;
  plan_.arrangement = arrangement;
  plan_.stages = schedule.devices;
  plan_.replicas = schedule.replicas;
  plan_.microbatches = schedule.microbatches;
  plan_.cell = schedule.cell;
  for (const Datacenter& datacenter : scenario.datacenters)
    plan_.datacenters.push_back(datacenter.name);
  plan_.extras.overlap =
      Overlap::of(scenario.overlap.node, scenario.overlap.datacenter, scenario.overlap.wan);
  plan_.ranks.resize(to_size(scenario.ranks()));
  compute_lane_.assign(to_size(scenario.ranks()), kNone<LaneId>);
  if (crossing == Crossing::relayed)
    relays_.emplace(schedule, scenario, costs_.front(), plan_, network_, compute_lane_);
}

Result<Plan> Lowering::run() {
  if (network_.missing_link()) return *network_.missing_link();
  if (auto why = arrange_messages()) return *std::move(why);
  reserve();
  for (std::vector<Pipeline>& batch : batches())
    if (auto why = lower_batch(std::move(batch))) return *std::move(why);
  if (relays_)
    if (auto why = relays_->finish()) return *std::move(why);
  lower_services();
  collectives_.fill(compute_lane_);
  parts_.fill(compute_lane_);
  if (network_.missing_link()) return *network_.missing_link();
  if (auto why = apply_link_orders(plan_, schedule_, relays_ ? Turns::taken : Turns::ordered))
    return *std::move(why);
  return std::move(plan_);
}

std::vector<std::vector<Lowering::Pipeline>> Lowering::batches() const {
  const Parallel& parallel = scenario_.parallel;
  const int together =
      parallel.order.back() == RankDimension::replica ? schedule_.cell : schedule_.replicas;
  std::vector<std::vector<Pipeline>> all;
  for (const ReplicaId replica : schedule_.replica_ids()) {
    if (number(replica) % together == 0) all.emplace_back();
    for (int tensor = 0; tensor < parallel.tensor; ++tensor)
      all.back().push_back({replica, tensor});
  }
  return all;
}

std::optional<Refusal> Lowering::lower_batch(std::vector<Pipeline> pipelines) {
  batch_ = std::move(pipelines);
  if (relays_)
    if (auto why = relays_->begin(messages_of(schedule_.cell_of(batch_.front().replica))))
      return why;
  lay_out_lanes();
  if (relays_) relays_->fill();
  for (int local = 0; local < std::ssize(batch_); ++local) {
    for (const DeviceId device : schedule_.device_ids()) fill_compute(local, device);
    for (std::size_t c = 0; c < messages(batch_[at(local)].replica).channels.size(); ++c)
      fill_channel(local, c);
  }
  return network_.missing_link();
}

/// They have nothing to do until something gives them ops.
void Lowering::lower_services() {
  for (int rank = scenario_.training_ranks(); rank < scenario_.ranks(); ++rank) {
    plan_.ranks[at(rank)] = network_.info(Rank{rank});
    compute_lane_[at(rank)] =
        add_lane(plan_, "compute", OpKind::compute, Rank{rank}, kNone<Rank>, 0);
  }
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
  plan_.ops.reserve(to_size(scenario_.parallel.tensor) * (blocks + 2 * plain) + 6 * pieces +
                    collectives_.ops() + parts_.ops());
  // Blocks that wait for several: all pieces of their input, collectives.
  plan_.after.reserve(pieces + collectives_.waits());
}

/// Of all ranks of the batch, in the order of their numbers.
void Lowering::lay_out_lanes() {
  struct Layout {
    Rank rank{};
    int local = 0;
    DeviceId device{};
  };
  std::vector<Layout> ranks;
  send_lane_.assign(batch_.size(), {});
  recv_lane_.assign(batch_.size(), {});
  for (int local = 0; local < std::ssize(batch_); ++local) {
    const std::size_t channels = messages(batch_[at(local)].replica).channels.size();
    send_lane_[at(local)].assign(channels, kNone<LaneId>);
    recv_lane_[at(local)].assign(channels, kNone<LaneId>);
    for (const DeviceId device : schedule_.device_ids())
      ranks.push_back({rank_of(batch_[at(local)], device), local, device});
  }
  std::ranges::sort(ranks, {}, &Layout::rank);
  for (const Layout& each : ranks) lay_out_lanes(each.local, each.device);
}

void Lowering::lay_out_lanes(int local, DeviceId device) {
  const Pipeline& pipeline = batch_[at(local)];
  const auto& channels = messages(pipeline.replica).channels;
  const Rank rank = rank_of(pipeline, device);
  plan_.ranks[index(rank)] = network_.info(rank);
  compute_lane_[index(rank)] = add_lane(plan_, "compute", OpKind::compute, rank, kNone<Rank>,
                                        schedule_.row(pipeline.replica, device).size());
  for (std::size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].from != device || relayed(channels[c])) continue;
    const Rank peer = rank_of(pipeline, channels[c].to);
    send_lane_[at(local)][c] = add_lane(plan_, fmt::format("send>{}", index(peer)), OpKind::send,
                                        rank, peer, channels[c].count);
  }
  if (relays_) relays_->add_send_lanes(local, device);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].to != device || relayed(channels[c])) continue;
    const Rank peer = rank_of(pipeline, channels[c].from);
    recv_lane_[at(local)][c] = add_lane(plan_, fmt::format("recv<{}", index(peer)), OpKind::recv,
                                        rank, peer, channels[c].count);
  }
  if (relays_) relays_->add_recv_lanes(local, device);
  collectives_.lay_out(rank);
  parts_.lay_out(rank);
}

Waits Lowering::waits_of(int local, DeviceId device) const {
  Waits waits;
  const Pipeline& pipeline = batch_[at(local)];
  const Messages& mine = messages(pipeline.replica);
  for (std::size_t c = 0; c < mine.channels.size(); ++c) {
    const auto& channel = mine.channels[c];
    if (channel.to != device || relayed(channel)) continue;
    const LaneId lane = recv_lane_[at(local)][c];
    for (std::size_t i = 0; i < channel.count; ++i)
      waits.emplace_back(mine.all[channel.first + i].needed_before, op_at(plan_, lane, i));
  }
  if (relays_) relays_->append_waits(local, device, waits);
  collectives_.append_waits(rank_of(pipeline, device), waits);
  merge_runs(waits);
  return waits;
}

void Lowering::fill_compute(int local, DeviceId device) {
  const Pipeline& pipeline = batch_[at(local)];
  const auto row = schedule_.row(pipeline.replica, device);
  const Waits waits = waits_of(local, device);
  const ResourceSetId resources = network_.device(rank_of(pipeline, device));
  auto wait = waits.begin();
  for (std::size_t i = 0; i < row.size(); ++i) {
    Op& op = plan_.ops[index(compute_at(pipeline, device, static_cast<std::int32_t>(i)))];
    set_block(op, row[i]);
    op.resources = resources;
    op.duration = costs(pipeline.replica).duration(row[i]);
    op.size = costs(pipeline.replica).memory(row[i]);
    for (; wait != waits.end() && wait->first == static_cast<std::int32_t>(i); ++wait)
      plan_.add_after(op, wait->second);
  }
}

Route Lowering::route_of(const Pipeline& pipeline, const Messages::Channel& channel) {
  if (crossing_ == Crossing::pooled)
    return pooled_route(schedule_, scenario_, pipeline.replica, channel, network_);
  return network_.route(rank_of(pipeline, channel.from), rank_of(pipeline, channel.to));
}

void Lowering::fill_channel(int local, std::size_t c) {
  const Pipeline& pipeline = batch_[at(local)];
  const auto& channel = messages(pipeline.replica).channels[c];
  if (relayed(channel)) return;
  const Route route = route_of(pipeline, channel);
  for (std::size_t i = 0; i < channel.count; ++i) {
    const Message& m = messages(pipeline.replica).all[channel.first + i];
    const OpId send = op_at(plan_, send_lane_[at(local)][c], i);
    const OpId recv = op_at(plan_, recv_lane_[at(local)][c], i);
    join_sides(plan_, send, recv, m.producer, costs(pipeline.replica).message(m.producer), route);
    plan_.add_after(plan_.ops[index(send)], compute_at(pipeline, m.from, m.sent_after));
    if (grouped() && m.posted_before > 0)
      plan_.add_after(plan_.ops[index(recv)], compute_at(pipeline, m.to, m.posted_before - 1));
  }
}

}  // namespace longhaul::plan
