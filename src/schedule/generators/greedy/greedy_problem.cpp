#include <algorithm>

#include "base/index.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/generators/greedy/greedy.hpp"
#include "schedule/link_delays.hpp"
#include "schedule/memory.hpp"

namespace longhaul::schedule::families {
namespace {

/// The schedule's chunks, with an R of each where the scenario recomputes: what costs ask for.
Schedule layout_of(const Schedule& schedule, const Scenario& scenario) {
  Schedule layout;
  layout.name = schedule.name;
  layout.devices = schedule.devices;
  layout.chunks = schedule.chunks;
  layout.microbatches = schedule.microbatches;
  layout.copies = schedule.copies;
  layout.device_of_chunk = schedule.device_of_chunk;
  layout.rows.resize(at(schedule.devices));
  if (!scenario.memory.recompute) return layout;
  for (ChunkId chunk{}; chunk < schedule.chunks; ++chunk) {
    layout.rows[index(schedule.device_of_chunk[chunk])].push_back(
        {.kind = BlockKind::R, .chunk = chunk});
  }
  return layout;
}

/// Memory that a chunk's device must hold at once for one microbatch to pass: every chunk's F is
/// done before the D of the last one, and each R needs the rest of its activation.
Bytes least_memory(const GreedyProblem& problem, const std::vector<ChunkId>& chunks) {
  Bytes kept;
  Bytes least;
  for (const ChunkId chunk : chunks) {
    if (problem.chunks[chunk].count == 0) continue;
    kept += problem.chunks[chunk].kept;
    least = std::max(least, kept + problem.chunks[chunk].rest);
  }
  return least;
}

std::optional<Refusal> why_over_budget(const GreedyProblem& problem, const Scenario& scenario,
                                       const Schedule& schedule) {
  Bytes least;
  DeviceId device{};
  for (const DeviceId d : problem.chunks_on.ids()) {
    const Bytes needed = least_memory(problem, problem.chunks_on[d]);
    if (needed <= least) continue;
    least = needed;
    device = d;
  }
  if (least <= problem.limit) return std::nullopt;
  return refused(
      "{} does not fit memory.budget = {} (device {} holds {} bytes of activations for one "
      "microbatch alone, the budget is {}). Set memory.budget to {} or more.",
      schedule.name, scenario.memory.budget, device, least.count(), problem.limit.count(),
      least_budget(least, schedule, scenario));
}

/// Data parallelism: gathers of weights before each chunk's first F, one after the other on a
/// device, and reductions of gradients after its last W.
void add_collectives(GreedyProblem& problem, const Scenario& scenario, const Schedule& schedule,
                     const LinkDelays& links) {
  if (schedule.copies > 1) return;
  const IndexedVector<ChunkId, ChunkShare> shares = chunk_shares(schedule);
  for (const std::vector<ChunkId>& mine : problem.chunks_on) {
    Duration gathered{};
    for (const ChunkId c : mine) {
      GreedyChunk& chunk = problem.chunks[c];
      const ChunkShare& part = shares[c];
      const Bytes weights = share(scenario.costs.weights[index(chunk.device)], part.of, part.place);
      const SyncTimes times = sync_times(scenario, links, chunk.device, weights);
      chunk.release = gathered += times.gather;
      chunk.reduction = times.reduction;
    }
  }
}

/// How long an activation of each chunk stays when nothing waits: from the start of its F to the
/// end of its D.
IndexedVector<ChunkId, Duration> lifetimes(const GreedyProblem& problem) {
  IndexedVector<ChunkId, Duration> lifetimes(problem.chunks.count());
  for (ChunkId c = lifetimes.end_id(); c > 0;) {
    c = previous(c);
    const GreedyChunk& chunk = problem.chunks[c];
    lifetimes[c] = chunk.forward + chunk.recompute + chunk.dgrad;
    if (!chunk.activation.is_taken()) continue;
    const GreedyHop& back = problem.chunks[next(c)].gradient;
    lifetimes[c] += lifetimes[next(c)] + chunk.activation.transfer + chunk.activation.latency +
                    back.transfer + back.latency;
  }
  return lifetimes;
}

/// Little's law: chunks that pass the same number of microbatches in the same time hold as many
/// activations as these stay long.
void share_memory(GreedyProblem& problem) {
  const IndexedVector<ChunkId, Duration> stay = lifetimes(problem);
  for (const std::vector<ChunkId>& mine : problem.chunks_on) {
    double all = 0;
    for (const ChunkId chunk : mine) all += static_cast<double>(stay[chunk].count());
    double front = 0;
    for (const ChunkId chunk : mine) {
      front += static_cast<double>(stay[chunk].count());
      problem.chunks[chunk].front_share = chunk == mine.back() || all == 0 ? 1 : front / all;
    }
  }
}

/// Looks up what each chunk costs.
class ChunkMaker {
public:
  ChunkMaker(const Scenario& scenario, const Schedule& schedule)
      : schedule_{schedule},
        layout_{layout_of(schedule, scenario)},
        costs_{layout_, scenario},
        memory_{layout_, scenario},
        links_{scenario},
        recompute_{scenario.memory.recompute} {}

  [[nodiscard]] GreedyChunk make(ChunkId chunk, int parts) {
    const auto block = [&](BlockKind kind) { return Block{.kind = kind, .chunk = chunk}; };
    GreedyChunk made;
    made.device = device_of(chunk);
    made.first = MicrobatchId{schedule_.copy_of(chunk)};
    made.stride = schedule_.copies;
    made.count = schedule_.microbatches_of(chunk);
    if (!schedule_.is_last(chunk)) made.activation = hop(block(BlockKind::F), next(chunk));
    if (!schedule_.is_first(chunk)) made.gradient = hop(block(BlockKind::D), previous(chunk));
    made.forward = costs_.duration(block(BlockKind::F));
    made.dgrad = costs_.duration(block(BlockKind::D));
    for (int part = 0; part < parts; ++part) {
      made.wgrad.push_back(costs_.duration({.kind = BlockKind::W,
                                            .part = static_cast<std::uint8_t>(part),
                                            .parts = static_cast<std::uint8_t>(parts),
                                            .chunk = chunk}));
    }
    made.kept = memory_.effect(block(BlockKind::F)).at_start;
    made.after_dgrad = -memory_.effect(block(BlockKind::D)).at_end;
    made.after_wgrad = -memory_.effect(block(BlockKind::W)).at_end;
    if (!recompute_) return made;
    made.recompute = costs_.duration(block(BlockKind::R));
    made.rest = memory_.effect(block(BlockKind::R)).at_start;
    return made;
  }
  [[nodiscard]] const LinkDelays& links() const { return links_; }

private:
  [[nodiscard]] DeviceId device_of(ChunkId chunk) const { return schedule_.device_of_chunk[chunk]; }
  [[nodiscard]] GreedyHop hop(const Block& producer, ChunkId taker) {
    GreedyHop made;
    made.chunk = taker;
    const DeviceId from = device_of(producer.chunk);
    const DeviceId to = device_of(taker);
    made.local = from == to;
    if (made.local) return made;
    const LinkDelay delay = links_.delay(from, to, costs_.message(producer));
    made.transfer = delay.transfer;
    made.latency = delay.latency;
    made.queued = delay.shared;
    made.resources = delay.resources;
    return made;
  }

  const Schedule& schedule_;
  Schedule layout_;
  BlockCosts costs_;
  ActivationModel memory_;
  LinkDelays links_;
  bool recompute_;
};

}  // namespace

Result<GreedyProblem> greedy_problem(const Scenario& scenario, const Schedule& schedule,
                                     int parts) {
  ChunkMaker maker{scenario, schedule};
  GreedyProblem problem;
  problem.limit = allowed_activation(schedule, scenario);
  problem.recompute = scenario.memory.recompute;
  problem.chunks_on.resize(schedule.devices);
  for (const ChunkId c : schedule.chunk_ids()) {
    problem.chunks.push_back(maker.make(c, parts));
    problem.chunks_on[problem.chunks.back().device].push_back(c);
  }
  for (std::vector<ChunkId>& mine : problem.chunks_on)
    std::ranges::stable_sort(mine, {}, [&](ChunkId c) { return schedule.stage_of(c); });
  share_memory(problem);
  add_collectives(problem, scenario, schedule, maker.links());
  problem.resources = maker.links().resources();
  if (auto why = why_over_budget(problem, scenario, schedule)) return *std::move(why);
  return problem;
}

}  // namespace longhaul::schedule::families
