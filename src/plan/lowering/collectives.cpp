#include "plan/lowering/collectives.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/lowering/lanes.hpp"

namespace longhaul::plan {
namespace {

/// The stages' places, and when their blocks run.
struct Stage {
  std::vector<DeviceId> devices;  ///< that hold it, ascending
  std::vector<ChunkId> chunks;    ///< the first of the stage on each of these devices
  std::int64_t first_forward = std::numeric_limits<std::int64_t>::max();  ///< row position
  std::int64_t last_gradient = -1;                                        ///< row position
};

/// By stage. Positions are those of replica 0; of several holders, the earliest and the latest.
IndexedVector<StageId, Stage> find_stages(const Schedule& schedule) {
  IndexedVector<StageId, Stage> stages(schedule.chunks_of_copy());
  for (const DeviceId device : schedule.device_ids()) {
    for (const ChunkId chunk : chunks_on(schedule, device)) {
      Stage& stage = stages[schedule.stage_of(chunk)];
      if (!stage.devices.empty() && stage.devices.back() == device) continue;
      stage.devices.push_back(device);
      stage.chunks.push_back(chunk);
    }
    const auto row = schedule.row(ReplicaId{0}, device);
    for (std::size_t i = 0; i < row.size(); ++i) {
      Stage& stage = stages[schedule.stage_of(row[i].chunk)];
      const auto position = static_cast<std::int64_t>(i);
      if (row[i].kind == BlockKind::F)
        stage.first_forward = std::min(stage.first_forward, position);
      if (row[i].kind == BlockKind::W || row[i].kind == BlockKind::B)
        stage.last_gradient = std::max(stage.last_gradient, position);
    }
  }
  return stages;
}

/// Stages in the order of a position of theirs, which is the same order on every lane.
std::vector<StageId> stages_by(const IndexedVector<StageId, Stage>& stages,
                               std::int64_t Stage::*position) {
  std::vector<StageId> order;
  for (const StageId stage : stages.ids()) order.push_back(stage);
  std::ranges::stable_sort(order, {}, [&](StageId stage) { return stages[stage].*position; });
  return order;
}

}  // namespace

bool is_estimate(GradientSync sync) {
  return sync == GradientSync::two_datacenter || sync == GradientSync::ring_rate;
}

Duration estimated_time(Bytes size, std::size_t members, const schedule::RingHop& ring,
                        GradientSync sync) {
  if (sync == GradientSync::two_datacenter) return schedule::exchange_time(ring, size);
  return schedule::all_reduce_at_rate(ring, size, static_cast<std::int64_t>(members));
}

std::vector<StageCollective> find_collectives(const Schedule& schedule, const Scenario& scenario) {
  std::vector<StageCollective> all;
  const GradientSync sync = scenario.parallel.gradient_sync;
  if (schedule.replicas * schedule.copies < 2 || sync == GradientSync::none) return all;
  const IndexedVector<StageId, Stage> stages = find_stages(schedule);
  const IndexedVector<ChunkId, ChunkShare> shares = chunk_shares(schedule);
  const auto add = [&](CollectiveKind kind, StageId s) {
    const Stage& stage = stages[s];
    StageCollective made{s, {}, stage.devices, stage.chunks};
    made.collective.kind = kind;
    for (const ReplicaId replica : schedule.replica_ids())
      for (const DeviceId device : stage.devices)
        made.collective.members.push_back(scenario.rank(replica, device));
    // Copy 0's holder says how large the stage is: its copies are of one size.
    const ChunkId first{number(s)};
    made.collective.size = share(scenario.costs.weights[index(schedule.device_of_chunk[first])],
                                 shares[first].of, shares[first].place);
    if (made.collective.members.size() < 2 || made.collective.size < Bytes{1}) return;
    std::ranges::sort(made.collective.members);
    all.push_back(std::move(made));
  };
  if (sync == GradientSync::zero1) {
    for (const StageId s : stages_by(stages, &Stage::first_forward))
      add(CollectiveKind::all_gather, s);
  }
  for (const StageId s : stages_by(stages, &Stage::last_gradient)) {
    add(sync == GradientSync::zero1 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
        s);
  }
  return all;
}

CollectiveLowering::CollectiveLowering(const Schedule& schedule, const Scenario& scenario,
                                       const TimeAlone& time_alone, Plan& plan, Network& network)
    : schedule_{schedule},
      scenario_{scenario},
      time_alone_{time_alone},
      whole_{time_alone && !is_estimate(scenario.parallel.gradient_sync)},
      estimates_{is_estimate(scenario.parallel.gradient_sync)},
      plan_{plan},
      network_{network},
      all_{find_collectives(schedule, scenario)},
      steps_{plan, network} {
  for (const StageCollective& each : all_) {
    if (in_steps()) {
      steps_.add(each.collective, each.chunks.front());
      continue;
    }
    plan_.collectives.emplace_back();
    op_of_.emplace_back(each.collective.members.size(), kNone<OpId>);
    duration_.push_back(estimates_
                            ? estimated_time(each.collective.size, each.collective.members.size(),
                                             network.ring(each.collective.members),
                                             scenario.parallel.gradient_sync)
                            : time_alone(each.collective));
  }
}

std::size_t CollectiveLowering::ops() const {
  if (in_steps()) return steps_.ops();
  std::size_t count = 0;
  for (const StageCollective& each : all_) count += each.collective.members.size();
  return count;
}

std::size_t CollectiveLowering::waits() const { return 2 * ops(); }

void CollectiveLowering::lay_out(Rank rank, DeviceId device) {
  if (in_steps()) return steps_.lay_out(rank);
  std::vector<std::size_t> mine;
  for (std::size_t c = 0; c < all_.size(); ++c)
    if (std::ranges::binary_search(all_[c].devices, device)) mine.push_back(c);
  if (mine.empty()) return;
  const LaneId lane =
      add_lane(plan_, "collective", OpKind::collective, rank, kNone<Rank>, mine.size());
  for (std::size_t k = 0; k < mine.size(); ++k) {
    const std::vector<Rank>& members = all_[mine[k]].collective.members;
    const auto place = std::ranges::lower_bound(members, rank) - members.begin();
    op_of_[mine[k]][to_size(place)] = op_at(plan_, lane, k);
  }
}

std::optional<std::int32_t> CollectiveLowering::first_forward(ReplicaId replica, DeviceId device,
                                                              StageId stage) const {
  const auto row = schedule_.row(replica, device);
  const auto first = std::ranges::find_if(row, [&](const Block& block) {
    return block.kind == BlockKind::F && schedule_.stage_of(block.chunk) == stage;
  });
  if (first == row.end()) return std::nullopt;  // fewer microbatches than copies
  return static_cast<std::int32_t>(first - row.begin());
}

void CollectiveLowering::append_waits(ReplicaId replica, DeviceId device,
                                      std::vector<Wait>& waits) const {
  const Rank rank = scenario_.rank(replica, device);
  for (std::size_t c = 0; c < all_.size(); ++c) {
    const StageCollective& each = all_[c];
    if (!is_before_forward(each.collective.kind)) continue;
    if (!std::ranges::binary_search(each.devices, device)) continue;
    const auto position = first_forward(replica, device, each.stage);
    if (!position) continue;
    if (in_steps()) {
      for (const OpId receive : steps_.receives_at(c, rank)) waits.emplace_back(*position, receive);
      continue;
    }
    const std::vector<Rank>& members = each.collective.members;
    const auto place = std::ranges::lower_bound(members, rank) - members.begin();
    waits.emplace_back(*position, op_of_[c][to_size(place)]);
  }
}

std::optional<OpId> CollectiveLowering::last_gradient(LaneId compute, StageId stage) const {
  const Rank rank = plan_.lanes[index(compute)].rank;
  const RankInfo& info = plan_.ranks[index(rank)];
  const auto row = schedule_.row(info.replica, info.device);
  const auto last = std::find_if(row.rbegin(), row.rend(), [&](const Block& block) {
    return schedule_.stage_of(block.chunk) == stage &&
           (block.kind == BlockKind::W || block.kind == BlockKind::B);
  });
  if (last == row.rend()) return std::nullopt;
  return op_at(plan_, compute, to_size(row.rend() - last - 1));
}

void CollectiveLowering::fill(const std::vector<LaneId>& compute_lane_of_rank) {
  for (std::uint32_t c = 0; c < all_.size(); ++c) {
    for (const Rank member : all_[c].collective.members) {
      const LaneId compute = compute_lane_of_rank[index(member)];
      if (!in_steps()) {
        fill_one(c, member, compute);
        continue;
      }
      if (is_before_forward(all_[c].collective.kind)) continue;
      if (const auto last = last_gradient(compute, all_[c].stage)) steps_.gate(c, member, *last);
    }
  }
  if (in_steps()) steps_.fill();
  for (std::vector<OpId>& members : plan_.collectives) std::ranges::sort(members);
}

/// Estimates hold their rank's turn alone; whole collectives hold what their messages hold.
ResourceSetId CollectiveLowering::held_by(const StageCollective& collective, Rank member) {
  if (!whole_) return network_.collective(member);
  const CollectiveSteps steps = steps_of(collective.collective);
  std::set<std::pair<std::int32_t, std::int32_t>> hops;
  for (const StepMessage& message : steps.messages) hops.emplace(message.from, message.to);
  std::vector<RankPair> pairs;
  for (const auto& [from, to] : hops)
    pairs.push_back(
        {collective.collective.members[at(from)], collective.collective.members[at(to)]});
  return network_.all_of(pairs, member);
}

void CollectiveLowering::fill_one(std::uint32_t number, Rank member, LaneId compute) {
  const StageCollective& each = all_[number];
  const std::vector<Rank>& members = each.collective.members;
  const OpId id =
      op_of_[number][to_size(std::ranges::lower_bound(members, member) - members.begin())];
  plan_.collectives[number].push_back(id);
  const DeviceId device = plan_.ranks[index(member)].device;
  const auto place = std::ranges::lower_bound(each.devices, device) - each.devices.begin();
  Op& op = plan_.ops[index(id)];
  op.kind = OpKind::collective;
  op.collective = each.collective.kind;
  op.chunk = each.chunks[to_size(place)];
  op.peer = members.front();
  op.match = number;
  op.resources = held_by(each, member);
  op.duration = duration_[number];
  op.size = each.collective.size;
  if (is_before_forward(each.collective.kind)) return;
  if (const auto last = last_gradient(compute, each.stage)) plan_.add_after(op, *last);
}

}  // namespace longhaul::plan
