#include "planner/hierarchy/hierarchy.hpp"

#include <algorithm>
#include <ranges>
#include <span>

#include "base/index.hpp"
#include "planner/hierarchy/shared_programs.hpp"
#include "schedule/memory.hpp"

namespace longhaul::planner {
namespace {

/// Replicas that hold a collective together: `count` of them, `stride` apart.
struct RingOfReplicas {
  int first = 0, stride = 1, count = 1;
  [[nodiscard]] ReplicaId member(int i) const { return ReplicaId{first + i % count * stride}; }
};

/// Plays the parts of a step one after the other: gathers, pipelines, sums, the optimizer.
class PartByPart {
public:
  PartByPart(const Scenario& scenario, const SharedPrograms& programs, const LinkIndex& links)
      : scenario_{scenario},
        parallel_{scenario.parallel},
        schedule_{programs.schedule()},
        programs_{programs},
        links_{links},
        shares_{chunk_shares(schedule_)},
        gates_(numbers(schedule_.chunks)),
        gradients_(numbers(schedule_.chunks)),
        sums_(numbers(schedule_.chunks)),
        over_(numbers(schedule_.devices)),
        blocks_(numbers(schedule_.devices)) {}

  HierarchicalTimes run() {
    result_.rank_ends = numbers(schedule_.devices);
    const ReplicaProgram& first = programs_.of(ReplicaId{0});
    for (const DeviceId device : schedule_.device_ids())
      for (const ChunkId chunk : in_order(device, first.first_forward())) gather(device, chunk);
    play_replicas();
    for (const DeviceId device : schedule_.device_ids())
      for (const ChunkId chunk : in_order(device, first.last_gradient())) sum(device, chunk);
    for (const ReplicaId replica : scenario_.replica_ids())
      for (const DeviceId device : schedule_.device_ids()) finish(replica, device);
    result_.played += ring_.messages();
    result_.ops += parallel_.tensor * 2 * ring_.messages();
    result_.programs = programs_.count();
    return std::move(result_);
  }

private:
  using Times = std::vector<Duration>;  ///< by replica, then chunk or device

  [[nodiscard]] Times numbers(int each) const {
    return Times(to_size(parallel_.replicas) * to_size(each));
  }
  [[nodiscard]] std::size_t of_chunk(ReplicaId replica, ChunkId chunk) const {
    return index(replica) * to_size(schedule_.chunks) + at(chunk);
  }
  [[nodiscard]] std::size_t of_device(ReplicaId replica, DeviceId device) const {
    return index(replica) * to_size(schedule_.devices) + index(device);
  }

  /// Chunks of a device by their places in its row: every rank runs its collectives in this order.
  [[nodiscard]] std::vector<ChunkId> in_order(DeviceId device,
                                              const std::vector<std::int32_t>& places) const {
    std::vector<ChunkId> chunks = chunks_on(schedule_, device);
    std::ranges::stable_sort(chunks, {}, [&](ChunkId chunk) { return places[at(chunk)]; });
    return chunks;
  }

  [[nodiscard]] Bytes weights_of(DeviceId device, ChunkId chunk) const {
    return share(scenario_.costs.weights[index(device)], shares_[chunk].of, shares_[chunk].place);
  }

  [[nodiscard]] bool gathers() const {
    const GradientSync sync = parallel_.gradient_sync;
    return divides_optimizer(sync) || sync == GradientSync::zero3;
  }
  /// Replicas that hold one copy of what is divided together.
  [[nodiscard]] int together() const {
    return parallel_.gradient_sync == GradientSync::zero3 ? parallel_.shard : parallel_.replicas;
  }

  void gather(DeviceId device, ChunkId chunk) {
    if (!gathers()) return;
    const Bytes size = weights_of(device, chunk);
    for (int first = 0; first < parallel_.replicas; first += together()) {
      const RingOfReplicas ring{first, 1, together()};
      play_ring(CollectiveKind::all_gather, size, ring, device,
                [&](ReplicaId replica) { return over_[of_device(replica, device)]; });
      if (!is_played(size, ring)) continue;
      for (int i = 0; i < ring.count; ++i)
        gates_[of_chunk(ring.member(i), chunk)] = times_.arrived[at(i)];
    }
  }

  void sum(DeviceId device, ChunkId chunk) {
    if (parallel_.gradient_sync == GradientSync::none) return;
    const Bytes size = weights_of(device, chunk);
    const CollectiveKind kind =
        gathers() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    const int shards = together();
    for (int first = 0; first < parallel_.replicas; first += shards)
      sum_over({first, 1, shards}, kind, size, device, chunk);
    if (parallel_.gradient_sync != GradientSync::zero3) return;
    for (int shard = 0; shard < shards; ++shard) {
      const Bytes part{size.count() / shards + (shard < size.count() % shards ? 1 : 0)};
      sum_over({shard, shards, parallel_.replicas / shards}, CollectiveKind::all_reduce, part,
               device, chunk);
    }
  }

  void sum_over(const RingOfReplicas& ring, CollectiveKind kind, Bytes size, DeviceId device,
                ChunkId chunk) {
    play_ring(kind, size, ring, device, [&](ReplicaId replica) {
      return std::max(over_[of_device(replica, device)], gradients_[of_chunk(replica, chunk)]);
    });
    if (!is_played(size, ring)) return;
    for (int i = 0; i < ring.count; ++i) {
      Duration& arrived = sums_[of_chunk(ring.member(i), chunk)];
      arrived = std::max(arrived, times_.arrived[at(i)]);
      result_.makespan = std::max(result_.makespan, times_.over[at(i)]);
    }
  }

  [[nodiscard]] static bool is_played(Bytes size, const RingOfReplicas& ring) {
    return ring.count > 1 && size >= Bytes{1};
  }

  template <typename Begin>
  void play_ring(CollectiveKind kind, Bytes size, const RingOfReplicas& ring, DeviceId device,
                 const Begin& begin) {
    if (!is_played(size, ring)) return;
    times_.begin.clear(), ways_.clear();
    for (int i = 0; i < ring.count; ++i) {
      times_.begin.push_back(begin(ring.member(i)));
      ways_.push_back(links_.between(scenario_.rank(ring.member(i), device),
                                     scenario_.rank(ring.member(i + 1), device)));
    }
    ring_.play(kind, size, ways_, times_);
    for (int i = 0; i < ring.count; ++i)
      over_[of_device(ring.member(i), device)] = times_.over[at(i)];
  }

  void play_replicas() {
    ReplicaTimes times;
    const ReplicaProgram* last = nullptr;
    std::span<const Duration> last_gates;
    for (const ReplicaId replica : scenario_.replica_ids()) {
      const std::span gates =
          std::span{gates_}.subspan(of_chunk(replica, ChunkId{0}), to_size(schedule_.chunks));
      const ReplicaProgram& program = programs_.of(replica);
      if (&program != last || !std::ranges::equal(gates, last_gates)) {
        program.play(gates, times);
        result_.played += program.blocks() + program.messages();
      }
      last = &program, last_gates = gates;
      std::ranges::copy(times.gradients,
                        gradients_.begin() + offset(of_chunk(replica, ChunkId{0})));
      const auto place = offset(of_device(replica, DeviceId{0}));
      std::ranges::copy(times.blocks, blocks_.begin() + place);
      std::ranges::copy(times.all, result_.rank_ends.begin() + place);
      result_.last_block = std::max(result_.last_block, std::ranges::max(times.blocks));
      result_.makespan = std::max(result_.makespan, std::ranges::max(times.all));
      result_.work += program.work();
      result_.ops += parallel_.tensor * (program.blocks() + 2 * program.messages());
    }
  }

  [[nodiscard]] static std::ptrdiff_t offset(std::size_t place) {
    return static_cast<std::ptrdiff_t>(place);
  }

  /// Steps of the optimizer follow the device's blocks, each after its sum, in their order.
  void finish(ReplicaId replica, DeviceId device) {
    Duration& end = result_.rank_ends[of_device(replica, device)];
    end = std::max(end, over_[of_device(replica, device)]);
    const std::vector<Duration>& steps = scenario_.costs_of(replica).optimizer;
    Duration free = blocks_[of_device(replica, device)];
    if (!steps.empty()) {
      for (const ChunkId chunk : steps_of(device)) {
        free = std::max(free, sums_[of_chunk(replica, chunk)]);
        free += share(steps[index(device)], shares_[chunk].of, shares_[chunk].place);
        result_.ops += parallel_.tensor;
      }
    }
    end = std::max(end, free);
    result_.iteration = std::max(result_.iteration, end);
  }

  /// Chunks whose gradients are summed by the begin of the sum, then the others, the last first.
  [[nodiscard]] std::vector<ChunkId> steps_of(DeviceId device) const {
    const bool sums = parallel_.gradient_sync != GradientSync::none && parallel_.replicas > 1;
    std::vector<ChunkId> order;
    if (sums)
      for (const ChunkId chunk : in_order(device, programs_.of(ReplicaId{0}).last_gradient()))
        if (weights_of(device, chunk) >= Bytes{1}) order.push_back(chunk);
    const std::vector<ChunkId> all = chunks_on(schedule_, device);
    for (const ChunkId chunk : all | std::views::reverse)
      if (std::ranges::find(order, chunk) == order.end()) order.push_back(chunk);
    return order;
  }

  const Scenario& scenario_;
  const Parallel& parallel_;
  const Schedule& schedule_;
  const SharedPrograms& programs_;
  const LinkIndex& links_;
  IndexedVector<ChunkId, ChunkShare> shares_;
  Times gates_, gradients_, sums_;  ///< by replica and chunk
  Times over_, blocks_;             ///< by replica and device: collectives so far; its blocks
  RingPlayer ring_;
  RingTimes times_;
  std::vector<RingLink> ways_;
  HierarchicalTimes result_;
};

}  // namespace

std::optional<Refusal> why_no_hierarchy(const Scenario& scenario) {
  const auto no = [&](std::string_view what) {
    return refused(
        "{} has {} (ranks that are played part by part share no link and no interface, and "
        "exchange gradients in rings). Simulate it without --hierarchical.",
        scenario.name, what);
  };
  const GradientSync sync = scenario.parallel.gradient_sync;
  if (sync == GradientSync::compressed || sync == GradientSync::two_datacenter ||
      sync == GradientSync::ring_rate)
    return no(fmt::format("gradient_sync = \"{}\"", to_string(sync)));
  if (!scenario.nodes.empty()) return no("a [[node]]");
  if (scenario.overlap.largest() > 1) return no("[overlap]");
  for (const Link& link : scenario.links) {
    if (link.sharing == Sharing::datacenter) return no("a link with sharing = \"datacenter\"");
    if (!link.aggregate.is_unlimited()) return no("a link with an aggregate");
  }
  return std::nullopt;
}

Result<HierarchicalTimes> play_hierarchically(const Scenario& scenario,
                                              const schedule::Generator& generator) {
  if (auto why = why_no_hierarchy(scenario)) return *std::move(why);
  const LinkIndex links{scenario};
  SharedPrograms programs{scenario, generator, links};
  if (auto why = programs.make()) return *std::move(why);
  HierarchicalTimes times = PartByPart{scenario, programs, links}.run();
  if (scenario.has_uneven_replicas()) return times;
  times.memory = Bytes{};
  for (const schedule::DeviceNeed& need : schedule::device_memory(programs.schedule(), scenario))
    times.memory = std::max(*times.memory, need.total());
  return times;
}

}  // namespace longhaul::planner
