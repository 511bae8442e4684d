#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/generators/greedy.hpp"
#include "schedule/link_delays.hpp"
#include "schedule/memory.hpp"

namespace longhaul::families {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

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
  for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
    layout.rows[at(schedule.device_of_chunk[at(chunk)])].push_back(
        {.kind = BlockKind::R, .chunk = chunk, .microbatch = 0});
  }
  return layout;
}

/// What a chunk's device must hold at once for one microbatch to pass: every chunk's F is done
/// before the D of the last one, and each R needs the rest of its activation.
Bytes least_memory(const GreedyProblem& problem, const std::vector<int>& chunks) {
  Bytes kept;
  Bytes least;
  for (const int chunk : chunks) {
    if (problem.chunks[at(chunk)].count == 0) continue;
    kept += problem.chunks[at(chunk)].kept;
    least = std::max(least, kept + problem.chunks[at(chunk)].rest);
  }
  return least;
}

void require_budget(const GreedyProblem& problem, const Scenario& scenario,
                    const Schedule& schedule) {
  Bytes least;
  int device = 0;
  for (int d = 0; d < schedule.devices; ++d) {
    const Bytes needed = least_memory(problem, problem.chunks_on[at(d)]);
    if (needed <= least) continue;
    least = needed;
    device = d;
  }
  if (least <= problem.limit) return;
  Scenario unit = scenario;
  unit.memory.budget = 1;
  const double whole = static_cast<double>(unit.activation_budget().count());
  // Rounded up, so that the number works when it is typed.
  const double budget = std::ceil(static_cast<double>(least.count()) / whole * 1e6) / 1e6;
  fail(
      "{} does not fit memory.budget = {} (device {} holds {} bytes of activations for one "
      "microbatch alone, the budget is {}). Set memory.budget to {} or more.",
      schedule.name, scenario.memory.budget, device, least.count(), problem.limit.count(), budget);
}

/// Data parallelism: gathers of weights in front of each chunk's first F, one behind the other on a
/// device, and reductions of gradients behind its last W.
void add_collectives(GreedyProblem& problem, const Scenario& scenario, const Schedule& schedule,
                     const LinkDelays& links) {
  if (schedule.copies > 1) return;
  const std::vector<ChunkShare> shares = chunk_shares(schedule);
  for (const std::vector<int>& mine : problem.chunks_on) {
    Duration gathered{};
    for (const int c : mine) {
      GreedyChunk& chunk = problem.chunks[at(c)];
      const ChunkShare& part = shares[at(c)];
      const Bytes weights = share(scenario.costs.weights[at(chunk.device)], part.of, part.place);
      const Duration once = links.ring(chunk.device, weights);
      switch (scenario.parallel.gradient_sync) {
        case GradientSync::none: break;
        case GradientSync::all_reduce: chunk.reduction = 2 * once; break;
        case GradientSync::zero1:
          chunk.release = gathered += once;
          chunk.reduction = once;
          break;
        case GradientSync::two_datacenter:
          chunk.reduction = links.exchange(chunk.device, weights);
          break;
      }
    }
  }
}

/// How long an activation of each chunk stays when nothing waits: from the start of its F to the
/// end of its D.
std::vector<Duration> lifetimes(const GreedyProblem& problem) {
  std::vector<Duration> lifetimes(problem.chunks.size());
  for (std::size_t c = lifetimes.size(); c-- > 0;) {
    const GreedyChunk& chunk = problem.chunks[c];
    lifetimes[c] = chunk.forward + chunk.recompute + chunk.dgrad;
    if (chunk.activation.chunk < 0) continue;
    const GreedyHop& back = problem.chunks[c + 1].gradient;
    lifetimes[c] += lifetimes[c + 1] + chunk.activation.transfer + chunk.activation.latency +
                    back.transfer + back.latency;
  }
  return lifetimes;
}

/// Little's law: chunks that pass the same number of microbatches in the same time hold as many
/// activations as these stay long.
void share_memory(GreedyProblem& problem) {
  const std::vector<Duration> stay = lifetimes(problem);
  for (const std::vector<int>& mine : problem.chunks_on) {
    double all = 0;
    for (const int chunk : mine) all += static_cast<double>(stay[at(chunk)].count());
    double front = 0;
    for (const int chunk : mine) {
      front += static_cast<double>(stay[at(chunk)].count());
      problem.chunks[at(chunk)].front_share = chunk == mine.back() || all == 0 ? 1 : front / all;
    }
  }
}

}  // namespace

GreedyProblem greedy_problem(const Scenario& scenario, const Schedule& schedule, int parts) {
  const Schedule layout = layout_of(schedule, scenario);
  const BlockCosts costs{layout, scenario};
  const ActivationModel memory{layout, scenario};
  LinkDelays links{scenario};
  GreedyProblem problem;
  problem.limit = allowed_activation(schedule, scenario);
  problem.recompute = scenario.memory.recompute;
  problem.chunks_on.resize(at(schedule.devices));
  const auto hop = [&](const Block& producer, int step) {
    GreedyHop made;
    const bool ends =
        step > 0 ? schedule.is_last(producer.chunk) : schedule.is_first(producer.chunk);
    if (ends) return made;
    const int taker = producer.chunk + step;
    made.chunk = taker;
    const int from = schedule.device_of_chunk[at(producer.chunk)];
    const int to = schedule.device_of_chunk[at(taker)];
    made.local = from == to;
    if (made.local) return made;
    const LinkDelay delay = links.delay(from, to, costs.message(producer));
    made.transfer = delay.transfer;
    made.latency = delay.latency;
    made.queued = delay.shared;
    made.resources = delay.resources;
    return made;
  };
  for (int c = 0; c < schedule.chunks; ++c) {
    const auto block = [&](BlockKind kind) { return Block{.kind = kind, .chunk = c}; };
    GreedyChunk chunk;
    chunk.device = schedule.device_of_chunk[at(c)];
    chunk.first = schedule.copy_of(c);
    chunk.stride = schedule.copies;
    chunk.count = schedule.microbatches_of(c);
    chunk.activation = hop(block(BlockKind::F), +1);
    chunk.gradient = hop(block(BlockKind::D), -1);
    chunk.forward = costs.duration(block(BlockKind::F));
    chunk.dgrad = costs.duration(block(BlockKind::D));
    for (int part = 0; part < parts; ++part) {
      chunk.wgrad.push_back(costs.duration({.kind = BlockKind::W,
                                            .part = static_cast<std::uint8_t>(part),
                                            .parts = static_cast<std::uint8_t>(parts),
                                            .chunk = c}));
    }
    chunk.kept = memory.effect(block(BlockKind::F)).at_start;
    chunk.after_dgrad = -memory.effect(block(BlockKind::D)).at_end;
    chunk.after_wgrad = -memory.effect(block(BlockKind::W)).at_end;
    if (problem.recompute) {
      chunk.recompute = costs.duration(block(BlockKind::R));
      chunk.rest = memory.effect(block(BlockKind::R)).at_start;
    }
    problem.chunks_on[at(chunk.device)].push_back(c);
    problem.chunks.push_back(chunk);
  }
  for (std::vector<int>& mine : problem.chunks_on)
    std::ranges::stable_sort(mine, {}, [&](int c) { return schedule.stage_of(c); });
  share_memory(problem);
  add_collectives(problem, scenario, schedule, links);
  problem.resources = links.resources();
  require_budget(problem, scenario, schedule);
  return problem;
}

}  // namespace longhaul::families
