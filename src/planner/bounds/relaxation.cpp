#include "planner/bounds/relaxation.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/index.hpp"
#include "plan/lowering/collectives.hpp"
#include "planner/collectives/time_alone.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/memory.hpp"

namespace longhaul::planner {
namespace {

/// Is a chunk recomputed? As its blocks are; where there are none, as the scenario says.
std::vector<bool> recomputed_chunks(const Schedule& like, const Scenario& scenario) {
  std::vector<bool> known(at(like.chunks)), recomputed(at(like.chunks));
  for (const auto& row : like.rows) {
    for (const Block& block : row) {
      known[at(block.chunk)] = true;
      if (block.kind == BlockKind::R) recomputed[at(block.chunk)] = true;
    }
  }
  for (std::size_t chunk = 0; chunk < known.size(); ++chunk) {
    if (!known[chunk]) recomputed[chunk] = scenario.memory.recompute;
  }
  return recomputed;
}

/// The layout without an order; an R a chunk where blocks are recomputed, which is how costs and
/// memory know.
Schedule layout_of(const Schedule& like, const std::vector<bool>& recomputed) {
  Schedule layout = like;
  layout.link_orders.clear();
  layout.rows.assign(at(like.devices), {});
  for (ChunkId chunk{}; chunk < like.chunks; ++chunk) {
    if (recomputed[at(chunk)])
      layout.rows[index(like.device_of_chunk[chunk])].push_back(
          {.kind = BlockKind::R, .chunk = chunk});
  }
  return layout;
}

RelaxedChunk relax_chunk(const Schedule& layout, bool recompute, const schedule::BlockCosts& costs,
                         const schedule::ActivationModel& memory, ChunkId chunk) {
  const auto block = [&](BlockKind kind) { return Block{.kind = kind, .chunk = chunk}; };
  const auto time = [&](BlockKind kind) { return costs.duration(block(kind)); };
  RelaxedChunk relaxed;
  relaxed.dgrad = time(BlockKind::D);
  relaxed.wgrad = time(BlockKind::W);
  relaxed.backward = time(BlockKind::B);
  relaxed.device = layout.device_of_chunk[chunk];
  relaxed.count = layout.microbatches_of(chunk);
  relaxed.forward = time(BlockKind::F);
  relaxed.gradient = std::min(relaxed.dgrad, relaxed.backward);
  relaxed.weight = std::min(relaxed.dgrad + relaxed.wgrad, relaxed.backward) - relaxed.gradient;
  relaxed.taken = memory.effect(block(BlockKind::F)).at_start;
  relaxed.recomputed = recompute;
  if (recompute) {
    relaxed.recompute = time(BlockKind::R);
  } else {
    relaxed.rest = relaxed.taken + memory.effect(block(BlockKind::D)).at_end;
  }
  return relaxed;
}

/// What a collective takes at least, by member.
LeastTimes least_of(const plan::Collective& collective, const Scenario& scenario,
                    plan::Network& network) {
  const GradientSync sync = scenario.parallel.gradient_sync;
  if (!plan::is_estimate(sync)) {
    LeastTimes least = least_times(collective, scenario);
    // Weights may come before the member has begun to send its own.
    if (is_before_forward(collective.kind))
      least.to_own_end.assign(collective.members.size(), Duration::zero());
    return least;
  }
  const Duration estimate = plan::estimated_time(collective.size, collective.members.size(),
                                                 network.ring(collective.members), sync);
  const std::vector<Duration> of_each(collective.members.size(), estimate);
  return {of_each, of_each, of_each};
}

void add_collectives(const Schedule& layout, const Scenario& scenario, plan::Network& network,
                     std::vector<RelaxedReplica>& replicas) {
  for (const plan::StageCollective& each : plan::find_collectives(layout, scenario)) {
    const LeastTimes least = least_of(each.collective, scenario, network);
    for (std::size_t member = 0; member < each.collective.members.size(); ++member) {
      const RankPlace place = scenario.place_of(each.collective.members[member]);
      if (place.tensor > 0) continue;  // what the first of them takes is a bound
      for (int copy = 0; copy < layout.copies; ++copy) {
        RelaxedChunk& chunk =
            replicas[index(place.replica)].chunks[at(copy * layout.chunks_of_copy() + each.stage)];
        if (chunk.device != place.stage) continue;
        if (is_before_forward(each.collective.kind)) {
          chunk.gather = least.arrival[member];
          chunk.gathering = least.to_own_end[member];
        } else {
          // Of sharded weights there are two, one after the other.
          chunk.reduction = std::max(chunk.reduction, chunk.reducing + least.to_all_ends[member]);
          chunk.reducing += least.to_own_end[member];
        }
      }
    }
  }
}

/// Finds how messages travel.
class Hops {
public:
  Hops(const Schedule& layout, const Scenario& scenario, const schedule::BlockCosts& costs)
      : layout_{layout}, scenario_{scenario}, costs_{costs}, network_{scenario, plan_} {}

  /// The hop from the chunk of `producer` to another, in one replica.
  RelaxedHop find(ReplicaId replica, const Block& producer, ChunkId to) {
    RelaxedHop hop;
    const DeviceId from_device = layout_.device_of_chunk[producer.chunk];
    const DeviceId to_device = layout_.device_of_chunk[to];
    if (from_device == to_device) return hop;
    const ReplicaId relay = relay_of(replica, from_device, to_device);
    const plan::Route route =
        network_.route(scenario_.rank(relay, from_device), scenario_.rank(relay, to_device));
    Bytes size = costs_.message(producer);
    if (is_relayed(replica, from_device, to_device)) {
      const CellReplicas cell = cell_replicas(layout_, layout_.cell_of(replica));
      size = share(size, cell.count, cell.local_dp_rank(relay));
    }
    hop.transfer = size / route.rate;
    hop.latency = route.latency;
    const auto set = index(route.resources);
    for (std::uint32_t i = plan_.set_begin[set]; i < plan_.set_begin[set + 1]; ++i) {
      const ResourceId resource = plan_.set_items[i];
      // A resource that several hold at a time is no machine.
      if (plan_.resources[index(resource)].capacity == 1) hop.resources.push_back(resource);
    }
    return hop;
  }
  [[nodiscard]] plan::Network& network() { return network_; }
  [[nodiscard]] const std::vector<Resource>& resources() const { return plan_.resources; }

private:
  [[nodiscard]] bool is_relayed(ReplicaId replica, DeviceId from, DeviceId to) const {
    return layout_.cell > 1 && scenario_.datacenter_of(scenario_.rank(replica, from)) !=
                                   scenario_.datacenter_of(scenario_.rank(replica, to));
  }

  /// Between datacenters a DP-cell sends a piece of every message over each of its pipelines'
  /// links. The piece on the slowest link alone is looked at, which is of the same LocalDPRank for
  /// all messages: none is there before this piece is, and the link has one after the other.
  /// Routes inside the datacenters are left out.
  [[nodiscard]] ReplicaId relay_of(ReplicaId replica, DeviceId from, DeviceId to) {
    if (!is_relayed(replica, from, to)) return replica;
    const CellReplicas cell = cell_replicas(layout_, layout_.cell_of(replica));
    ReplicaId slowest = cell.first;
    Bandwidth least;
    for (const ReplicaId relay : cell.ids()) {
      const Bandwidth rate =
          network_.route(scenario_.rank(relay, from), scenario_.rank(relay, to)).rate;
      if (rate >= least) continue;
      least = rate;
      slowest = relay;
    }
    return slowest;
  }

  const Schedule& layout_;
  const Scenario& scenario_;
  const schedule::BlockCosts& costs_;
  Plan plan_;
  plan::Network network_;
};

schedule::Placement placement_of(const Schedule& like) {
  if (like.copies > 1) return schedule::Placement::bidirectional;
  if (like.chunks == like.devices) return schedule::Placement::unidirectional;
  // A V comes back to the device that it turned at.
  const auto& devices = like.device_of_chunk;
  return devices.back() == devices.front() && like.devices > 1 ? schedule::Placement::wave
                                                               : schedule::Placement::loop;
}

/// "not recomputed", "every block recomputed", "chunks 0, 2 recomputed".
std::string recompute_text(const std::vector<RelaxedChunk>& chunks) {
  std::vector<std::size_t> recomputed;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    if (chunks[c].recomputed) recomputed.push_back(c);
  }
  if (recomputed.empty()) return "not recomputed";
  if (recomputed.size() == chunks.size()) return "every block recomputed";
  return fmt::format("{} {} recomputed", recomputed.size() == 1 ? "chunk" : "chunks",
                     fmt::join(recomputed, ", "));
}

/// ", cells of 3 that share the WAN", where there are any.
std::string cell_text(const Schedule& layout) {
  if (layout.cell == 1) return {};
  return fmt::format(", cells of {} that share the WAN", layout.cell);
}

/// "any of ud, wave placement".
std::string placement_text(const std::set<schedule::Placement>& placements) {
  std::vector<const char*> names;
  for (const schedule::Placement placement : placements)
    names.push_back(schedule::to_string(placement));
  return fmt::format("{}{} placement", names.size() > 1 ? "any of " : "", fmt::join(names, ", "));
}

}  // namespace

Relaxation relax(const Schedule& like, const Scenario& scenario) {
  const std::vector<bool> recomputed = recomputed_chunks(like, scenario);
  const Schedule layout = layout_of(like, recomputed);
  const schedule::BlockCosts costs{layout, scenario};
  const schedule::ActivationModel memory{layout, scenario};
  Hops hops{layout, scenario, costs};
  RelaxedReplica timeless;
  for (ChunkId chunk{}; chunk < layout.chunks; ++chunk)
    timeless.chunks.push_back(relax_chunk(layout, recomputed[at(chunk)], costs, memory, chunk));
  Relaxation relaxation{layout.devices,
                        layout.chunks_of_copy(),
                        schedule::allowed_activation(layout, scenario),
                        {},
                        {}};
  for (const ReplicaId replica : layout.replica_ids()) {
    relaxation.replicas.push_back(timeless);
    for (ChunkId chunk{}; chunk < layout.chunks; ++chunk) {
      RelaxedChunk& relaxed = relaxation.replicas.back().chunks[at(chunk)];
      const auto hop_to = [&](BlockKind kind, ChunkId to) {
        return hops.find(replica, {.kind = kind, .part = 0, .parts = 1, .chunk = chunk}, to);
      };
      if (!layout.is_last(chunk)) relaxed.next = hop_to(BlockKind::F, next(chunk));
      if (!layout.is_first(chunk)) relaxed.previous = hop_to(BlockKind::D, previous(chunk));
    }
  }
  add_collectives(layout, scenario, hops.network(), relaxation.replicas);
  require_none(hops.network().missing_link());
  for (const Resource& resource : hops.resources())
    relaxation.resource_names.push_back(resource.name);
  return relaxation;
}

void ClassOfBound::add(const Schedule& layout, const Relaxation& relaxed) {
  placements_[recompute_text(relaxed.replicas.front().chunks) + cell_text(layout)].insert(
      placement_of(layout));
}

std::string ClassOfBound::text(double budget) const {
  std::string all;
  for (const auto& [recompute, placements] : placements_)
    all += fmt::format("{}{}, whole blocks or parts, budget {}, {}", all.empty() ? "" : "; ",
                       placement_text(placements), budget, recompute);
  return all;
}

}  // namespace longhaul::planner
