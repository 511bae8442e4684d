#include "plan/collectives.hpp"

#include <algorithm>

namespace longhaul {
namespace {

/// Chunks of a row by their first F, or by the last of their gradient blocks.
std::vector<int> chunks_by_first_forward(std::span<const Block> row) {
  std::vector<int> chunks;
  for (const Block& block : row) {
    if (block.kind == BlockKind::F && std::ranges::find(chunks, block.chunk) == chunks.end())
      chunks.push_back(block.chunk);
  }
  return chunks;
}

std::vector<int> chunks_by_last_gradient(std::span<const Block> row) {
  std::vector<int> chunks;
  for (std::size_t i = row.size(); i-- > 0;) {
    if ((row[i].kind == BlockKind::W || row[i].kind == BlockKind::B) &&
        std::ranges::find(chunks, row[i].chunk) == chunks.end())
      chunks.push_back(row[i].chunk);
  }
  std::ranges::reverse(chunks);
  return chunks;
}

Duration duration_of(CollectiveKind kind, Bytes size, std::size_t members,
                     const Network::Ring& ring, GradientSync sync) {
  // CrossPipe appendix E: 2 (alpha + 2 N/2 beta), with 2N the bytes of bf16 weights.
  if (sync == GradientSync::two_datacenter) return 2 * ring.latency + size / ring.rate;
  return ring_time(kind, size, members, ring);
}

/// The last W or B of the chunk in the row of the rank.
OpId last_gradient(const Plan& plan, const Schedule& schedule, Rank rank, int chunk) {
  const RankInfo& info = plan.ranks[index(rank)];
  const auto row = schedule.row(info.replica, info.device);
  const auto last = std::find_if(row.rbegin(), row.rend(), [&](const Block& block) {
    return block.chunk == chunk && (block.kind == BlockKind::W || block.kind == BlockKind::B);
  });
  const auto compute = std::ranges::find_if(plan.lanes, [&](const Lane& lane) {
    return lane.rank == rank && lane.kind == LaneKind::compute;
  });
  return OpId{static_cast<std::uint32_t>(index(compute->first)) +
              static_cast<std::uint32_t>(row.rend() - last - 1)};
}

void fill_one(Plan& plan, const Schedule& schedule, const ChunkCollective& collective,
              std::size_t position, const std::vector<LaneId>& lane_of_rank, Network& network) {
  const auto group = static_cast<std::uint32_t>(plan.collectives.size());
  plan.collectives.emplace_back();
  for (const Rank rank : collective.members) {
    const Lane& lane = plan.lanes[index(lane_of_rank[index(rank)])];
    const OpId id{static_cast<std::uint32_t>(index(lane.first) + position)};
    plan.collectives.back().push_back(id);
    Op& op = plan.ops[index(id)];
    op.kind = OpKind::collective;
    op.collective = collective.kind;
    op.chunk = collective.chunk;
    op.peer = collective.members.front();
    op.match = group;
    op.resources = network.collective(rank);
    op.duration = collective.duration;
    op.size = collective.size;
    if (collective.kind != CollectiveKind::all_gather)
      plan.add_after(op, last_gradient(plan, schedule, rank, collective.chunk));
  }
}

}  // namespace

Duration ring_time(CollectiveKind kind, Bytes size, std::size_t members,
                   const Network::Ring& ring) {
  const auto n = static_cast<std::int64_t>(members);
  const Duration once = size * (n - 1) / n / ring.rate + (n - 1) * ring.latency;
  return kind == CollectiveKind::all_reduce ? 2 * once : once;
}

std::vector<std::vector<ChunkCollective>> find_collectives(const Schedule& schedule,
                                                           const Scenario& scenario,
                                                           const Network& network) {
  std::vector<std::vector<ChunkCollective>> of_device(static_cast<std::size_t>(schedule.devices));
  const GradientSync sync = scenario.parallel.gradient_sync;
  if (schedule.replicas < 2 || sync == GradientSync::none) return of_device;
  for (int device = 0; device < schedule.devices; ++device) {
    std::vector<Rank> members;
    for (int replica = 0; replica < schedule.replicas; ++replica)
      members.push_back(scenario.rank(replica, device));
    const Network::Ring ring = network.ring(members);
    const std::vector<int> mine = chunks_on(schedule, device);
    const auto add = [&](CollectiveKind kind, int chunk) {
      const auto local = std::ranges::find(mine, chunk) - mine.begin();
      const Bytes size = share(scenario.costs.weights[static_cast<std::size_t>(device)],
                               static_cast<int>(mine.size()), static_cast<int>(local));
      of_device[static_cast<std::size_t>(device)].push_back(
          {kind, chunk, device, size, duration_of(kind, size, members.size(), ring, sync),
           members});
    };
    const auto row = schedule.row(0, device);
    if (sync == GradientSync::zero1) {
      for (const int chunk : chunks_by_first_forward(row)) add(CollectiveKind::all_gather, chunk);
    }
    for (const int chunk : chunks_by_last_gradient(row)) {
      add(sync == GradientSync::zero1 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
          chunk);
    }
  }
  return of_device;
}

void fill_collectives(Plan& plan, const Schedule& schedule,
                      const std::vector<std::vector<ChunkCollective>>& of_device,
                      const std::vector<LaneId>& lane_of_rank, Network& network) {
  for (const auto& collectives : of_device) {
    for (std::size_t k = 0; k < collectives.size(); ++k)
      fill_one(plan, schedule, collectives[k], k, lane_of_rank, network);
  }
}

}  // namespace longhaul
