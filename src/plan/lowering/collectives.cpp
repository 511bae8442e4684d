#include "plan/lowering/collectives.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

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

/// The last W or B of the stage in the row of the rank; nullopt where a copy of the model has no
/// microbatch.
std::optional<OpId> last_gradient(const Plan& plan, const Schedule& schedule, LaneId compute,
                                  StageId stage) {
  const Rank rank = plan.lanes[index(compute)].rank;
  const RankInfo& info = plan.ranks[index(rank)];
  const auto row = schedule.row(info.replica, info.device);
  const auto last = std::find_if(row.rbegin(), row.rend(), [&](const Block& block) {
    return schedule.stage_of(block.chunk) == stage &&
           (block.kind == BlockKind::W || block.kind == BlockKind::B);
  });
  if (last == row.rend()) return std::nullopt;
  return op_at(plan, compute, to_size(row.rend() - last - 1));
}

void fill_one(Plan& plan, const Schedule& schedule, const ChunkCollective& collective,
              LaneId compute, OpId id, std::uint32_t group, Network& network) {
  plan.collectives[group].push_back(id);
  Op& op = plan.ops[index(id)];
  op.kind = OpKind::collective;
  op.collective = collective.kind;
  op.chunk = collective.chunk;
  op.peer = collective.members.front();
  op.match = group;
  op.resources = network.collective(plan.lanes[index(compute)].rank);
  op.duration = collective.duration;
  op.size = collective.size;
  if (is_before_forward(collective.kind)) return;
  if (const auto last = last_gradient(plan, schedule, compute, collective.stage))
    plan.add_after(op, *last);
}

}  // namespace

Duration collective_time(CollectiveKind kind, Bytes size, std::size_t members,
                         const schedule::RingHop& ring, GradientSync sync) {
  if (sync == GradientSync::two_datacenter) return schedule::exchange_time(ring, size);
  if (sync == GradientSync::ring_rate)
    return schedule::all_reduce_at_rate(ring, size, static_cast<std::int64_t>(members));
  const Duration once = schedule::ring_time(ring, size, static_cast<std::int64_t>(members));
  return facts_of(kind).rounds * once;
}

IndexedVector<DeviceId, std::vector<ChunkCollective>> find_collectives(const Schedule& schedule,
                                                                       const Scenario& scenario,
                                                                       Network& network) {
  IndexedVector<DeviceId, std::vector<ChunkCollective>> of_device(schedule.devices);
  const GradientSync sync = scenario.parallel.gradient_sync;
  if (schedule.replicas * schedule.copies < 2 || sync == GradientSync::none) return of_device;
  const IndexedVector<StageId, Stage> stages = find_stages(schedule);
  const IndexedVector<ChunkId, ChunkShare> shares = chunk_shares(schedule);
  const auto add = [&](CollectiveKind kind, StageId s) {
    const Stage& stage = stages[s];
    std::vector<Rank> members;
    for (const ReplicaId replica : schedule.replica_ids()) {
      for (const DeviceId device : stage.devices) members.push_back(scenario.rank(replica, device));
    }
    if (members.size() < 2) return;
    // Copy 0's holder says how large the stage is: its copies are of one size.
    const ChunkId first{number(s)};
    const Bytes size = share(scenario.costs.weights[index(schedule.device_of_chunk[first])],
                             shares[first].of, shares[first].place);
    const Duration duration =
        collective_time(kind, size, members.size(), network.ring(members), sync);
    for (std::size_t i = 0; i < stage.devices.size(); ++i)
      of_device[stage.devices[i]].push_back({kind, s, stage.chunks[i], size, duration, members});
  };
  if (sync == GradientSync::zero1) {
    for (const StageId s : stages_by(stages, &Stage::first_forward))
      add(CollectiveKind::all_gather, s);
  }
  for (const StageId s : stages_by(stages, &Stage::last_gradient)) {
    add(sync == GradientSync::zero1 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
        s);
  }
  return of_device;
}

void fill_collectives(Plan& plan, const Schedule& schedule,
                      const IndexedVector<DeviceId, std::vector<ChunkCollective>>& of_device,
                      const std::vector<LaneId>& lane_of_rank,
                      const std::vector<LaneId>& compute_lane_of_rank, Network& network) {
  std::map<std::pair<CollectiveKind, int>, std::uint32_t> groups;  // by kind and stage
  for (const DeviceId device : of_device.ids()) {
    for (std::size_t k = 0; k < of_device[device].size(); ++k) {
      const ChunkCollective& collective = of_device[device][k];
      const auto [group, is_new] = groups.try_emplace(
          {collective.kind, collective.stage}, static_cast<std::uint32_t>(plan.collectives.size()));
      if (is_new) plan.collectives.emplace_back();
      for (const Rank rank : collective.members) {
        if (plan.ranks[index(rank)].device != device) continue;
        const Lane& lane = plan.lanes[index(lane_of_rank[index(rank)])];
        const OpId id{static_cast<std::uint32_t>(index(lane.first) + k)};
        fill_one(plan, schedule, collective, compute_lane_of_rank[index(rank)], id, group->second,
                 network);
      }
    }
  }
  for (std::vector<OpId>& members : plan.collectives) std::ranges::sort(members);
}

}  // namespace longhaul::plan
