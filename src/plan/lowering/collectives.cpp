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

/// Lists the collectives of training: see find_collectives().
class CollectiveFinder {
public:
  CollectiveFinder(const Schedule& schedule, const Scenario& scenario)
      : schedule_{schedule},
        scenario_{scenario},
        stages_{find_stages(schedule)},
        shares_{chunk_shares(schedule)} {}

  [[nodiscard]] std::vector<StageCollective> all() {
    const GradientSync sync = scenario_.parallel.gradient_sync;
    const bool gathers = divides_optimizer(sync) || sync == GradientSync::zero3;
    if (gathers) {
      for (const StageId s : stages_by(stages_, &Stage::first_forward))
        add(CollectiveKind::all_gather, s, groups_of(s), size_of(s));
    }
    for (const StageId s : stages_by(stages_, &Stage::last_gradient)) {
      const std::vector<std::vector<Rank>> groups = groups_of(s);
      add(gathers ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, s, groups,
          size_of(s));
      if (sync == GradientSync::zero3) sum_shards(s, groups);
    }
    return std::move(all_);
  }

private:
  /// Ranks that hold a copy of the weights together, ascending; of each place of the stage.
  [[nodiscard]] std::vector<std::vector<Rank>> groups_of(StageId s) const {
    const Parallel& parallel = scenario_.parallel;
    const int replicas =
        parallel.gradient_sync == GradientSync::zero3 ? parallel.shard : schedule_.replicas;
    std::vector<std::vector<Rank>> groups;
    for (int tensor = 0; tensor < parallel.tensor; ++tensor) {
      for (const ReplicaId replica : schedule_.replica_ids()) {
        if (number(replica) % replicas == 0) groups.emplace_back();
        for (const DeviceId device : stages_[s].devices)
          groups.back().push_back(scenario_.rank(replica, device, tensor));
      }
    }
    for (std::vector<Rank>& group : groups) std::ranges::sort(group);
    return groups;
  }

  /// Copy 0's holder says how large the stage is: its copies are of one size.
  [[nodiscard]] Bytes size_of(StageId s) const {
    const ChunkId first{number(s)};
    return share(scenario_.costs.weights[index(schedule_.device_of_chunk[first])],
                 shares_[first].of, shares_[first].place);
  }

  void add(CollectiveKind kind, StageId s, const std::vector<std::vector<Rank>>& groups,
           Bytes size) {
    for (const std::vector<Rank>& group : groups) {
      if (group.size() < 2 || size < Bytes{1}) continue;
      StageCollective made{s, {}, stages_[s].devices, stages_[s].chunks};
      made.collective.kind = kind;
      made.collective.members = group;
      made.collective.size = size;
      all_.push_back(std::move(made));
    }
  }

  /// Member k of every copy of the weights has their shard k.
  void sum_shards(StageId s, const std::vector<std::vector<Rank>>& groups) {
    const int copies = schedule_.replicas / scenario_.parallel.shard;
    const auto members = std::ssize(groups.front());
    for (std::size_t first = 0; first < groups.size(); first += at(copies)) {
      for (std::int64_t shard = 0; shard < members; ++shard) {
        std::vector<Rank> holders;
        for (std::size_t copy = first; copy < first + at(copies); ++copy)
          holders.push_back(groups[copy][at(shard)]);
        std::ranges::sort(holders);
        const std::int64_t whole = size_of(s).count();
        const Bytes size{whole / members + (shard < whole % members ? 1 : 0)};
        add(CollectiveKind::all_reduce, s, {holders}, size);
      }
    }
  }

  const Schedule& schedule_;
  const Scenario& scenario_;
  IndexedVector<StageId, Stage> stages_;
  IndexedVector<ChunkId, ChunkShare> shares_;
  std::vector<StageCollective> all_;
};

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
  if (schedule.replicas * schedule.copies < 2 ||
      scenario.parallel.gradient_sync == GradientSync::none ||
      scenario.parallel.gradient_sync == GradientSync::compressed)
    return {};
  return CollectiveFinder{schedule, scenario}.all();
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

void CollectiveLowering::lay_out(Rank rank) {
  if (in_steps()) return steps_.lay_out(rank);
  std::vector<std::size_t> mine;
  for (std::size_t c = 0; c < all_.size(); ++c)
    if (all_[c].is_of(rank)) mine.push_back(c);
  if (mine.empty()) return;
  const LaneId lane =
      add_lane(plan_, "collective", OpKind::collective, rank, kNone<Rank>, mine.size());
  for (std::size_t k = 0; k < mine.size(); ++k) {
    const std::vector<Rank>& members = all_[mine[k]].collective.members;
    const auto place = std::ranges::lower_bound(members, rank) - members.begin();
    op_of_[mine[k]][to_size(place)] = op_at(plan_, lane, k);
  }
}

std::optional<std::int32_t> CollectiveLowering::first_forward(const RankInfo& rank,
                                                              StageId stage) const {
  const auto row = schedule_.row(rank.replica, rank.device);
  const auto first = std::ranges::find_if(row, [&](const Block& block) {
    return block.kind == BlockKind::F && schedule_.stage_of(block.chunk) == stage;
  });
  if (first == row.end()) return std::nullopt;  // fewer microbatches than copies
  return static_cast<std::int32_t>(first - row.begin());
}

void CollectiveLowering::append_waits(Rank rank, std::vector<Wait>& waits) const {
  for (std::size_t c = 0; c < all_.size(); ++c) {
    const StageCollective& each = all_[c];
    if (!is_before_forward(each.collective.kind)) continue;
    if (!each.is_of(rank)) continue;
    const auto position = first_forward(plan_.ranks[index(rank)], each.stage);
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
    const std::vector<ResourceId> held = held_by(all_[c]);
    for (const Rank member : all_[c].collective.members) {
      const LaneId compute = compute_lane_of_rank[index(member)];
      if (!in_steps()) {
        fill_one(c, member, compute, held);
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
std::vector<ResourceId> CollectiveLowering::held_by(const StageCollective& collective) {
  if (!whole_) return {};
  const CollectiveSteps steps = steps_of(collective.collective);
  std::set<std::pair<std::int32_t, std::int32_t>> hops;
  for (const StepMessage& message : steps.messages) hops.emplace(message.from, message.to);
  std::vector<RankPair> pairs;
  for (const auto& [from, to] : hops)
    pairs.push_back(
        {collective.collective.members[at(from)], collective.collective.members[at(to)]});
  return network_.held_between(pairs);
}

void CollectiveLowering::fill_one(std::uint32_t number, Rank member, LaneId compute,
                                  const std::vector<ResourceId>& held) {
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
  op.resources = network_.all_of(held, member);
  op.duration = duration_[number];
  op.size = each.collective.size;
  if (is_before_forward(each.collective.kind)) return;
  if (const auto last = last_gradient(compute, each.stage)) plan_.add_after(op, *last);
}

}  // namespace longhaul::plan
