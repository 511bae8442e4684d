#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/random.hpp"
#include "scenario/scenario.hpp"
#include "schedule/memory.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::test {

/// Stages and replicas over several datacenters; every number drawn, links of both kinds.
inline Scenario random_scenario(Random& random) {
  const auto stages = static_cast<int>(random.between(1, 5));
  Scenario scenario = uniform_scenario(stages, static_cast<int>(random.between(1, 9)));
  scenario.parallel.replicas = static_cast<int>(random.between(1, 2));
  scenario.parallel.chunks = static_cast<int>(random.between(1, 3));
  scenario.parallel.sub_blocks = static_cast<int>(random.between(1, 4));
  scenario.parallel.gradient_sync = static_cast<GradientSync>(random.between(0, 3));
  scenario.memory.recompute = random.between(0, 3) == 0;
  scenario.memory.budget = 1.0 + 0.125 * static_cast<double>(random.between(0, 8));
  const auto rate = [&] { return Bandwidth{1e14 / static_cast<double>(random.between(1, 9))}; };
  const auto datacenters = static_cast<int>(random.between(1, 4));
  scenario.datacenters.clear();
  for (int from = 0; from < datacenters; ++from) {
    scenario.datacenters.push_back({fmt::format("dc{}", from), {}});
    if (random.between(0, 2) == 0)
      scenario.nodes.push_back(
          {DatacenterId{from}, static_cast<int>(random.between(1, 3)), rate(), rate()});
    for (int to = 0; to < datacenters; ++to) {
      if (from == to && random.between(0, 1) == 0) continue;
      Link link;
      link.from = DatacenterId{from};
      link.to = DatacenterId{to};
      link.latency = Duration{random.between(0, 400)};
      link.bandwidth = rate();
      link.sharing = static_cast<Sharing>(random.between(0, 1));
      scenario.links.push_back(link);
    }
  }
  const bool by_stage = random.between(0, 1) == 0;
  scenario.placement.clear();
  for (int rank = 0; rank < scenario.ranks(); ++rank) {
    const int at = by_stage ? rank % stages * datacenters / stages : rank / stages % datacenters;
    scenario.placement.push_back(DatacenterId{at});
  }
  Costs& costs = scenario.costs;
  for (auto* times : {&costs.forward, &costs.dgrad, &costs.wgrad, &costs.recompute}) {
    for (Duration& time : *times) time = Duration{random.between(0, 200)};
  }
  for (std::size_t i = 0; i < costs.backward.size(); ++i) {
    // Mostly a little cheaper than in two, as measured; at times anything.
    costs.backward[i] = random.between(0, 3) == 0
                            ? Duration{random.between(0, 400)}
                            : (costs.dgrad[i] + costs.wgrad[i]) * random.between(80, 105) / 100;
  }
  for (Bytes& size : costs.activation) size = Bytes{random.between(1'000'000, 3'000'000)};
  for (Bytes& size : costs.message) size = Bytes{random.between(0, 2'000'000)};
  for (Bytes& size : costs.weights) size = Bytes{random.between(0, 9'000'000)};
  return scenario;
}

/// Draws valid orders within the budget: blocks in an order in which they could run one by one.
/// Replicas follow one order and do not share the WAN, whatever those of `like` do.
class RandomOrder {
public:
  RandomOrder(const Schedule& like, const Scenario& scenario, Random& random)
      : schedule_{like},
        scenario_{scenario},
        random_{random},
        limit_{schedule::allowed_activation(like, scenario)},
        held_(static_cast<std::size_t>(like.devices)) {
    schedule_.name = "random";
    schedule_.rows.assign(static_cast<std::size_t>(like.devices), {});
    schedule_.link_orders.clear();
    schedule_.cell = 1;
    schedule_.recompute_timing = static_cast<RecomputeTiming>(random.between(0, 1));
  }

  /// nullopt where it ran out of memory in the middle.
  [[nodiscard]] std::optional<Schedule> draw() {
    for (const ChunkId chunk : schedule_.chunk_ids()) {
      for (const MicrobatchId m : schedule_.microbatch_ids()) {
        if (schedule_.runs(chunk, m)) open_.push_back({chunk, m, plan_of_cell(), 0});
      }
    }
    // The memory model knows of recomputation by the Rs of a schedule.
    Schedule with_recompute = schedule_;
    if (scenario_.memory.recompute) {
      for (int chunk = 0; chunk < schedule_.chunks; ++chunk)
        with_recompute.rows[0].push_back(block(BlockKind::R, chunk, 0));
    }
    const schedule::ActivationModel memory{with_recompute, scenario_};
    while (!open_.empty()) {
      std::vector<std::size_t> choices;
      for (std::size_t i = 0; i < open_.size(); ++i) {
        if (is_ready(open_[i]) && fits(memory, open_[i])) choices.push_back(i);
      }
      if (choices.empty()) return std::nullopt;
      const auto last = static_cast<std::int64_t>(choices.size()) - 1;
      take(memory, choices[static_cast<std::size_t>(random_.between(0, last))]);
    }
    return schedule_;
  }

private:
  /// The blocks of one chunk and microbatch in turn.
  struct Cell {
    ChunkId chunk;
    MicrobatchId microbatch;
    std::vector<Block> blocks;
    std::size_t next;
  };

  static Block block(BlockKind kind, int chunk, int microbatch) {
    return {kind, 0, 1, ChunkId{chunk}, MicrobatchId{microbatch}};
  }

  std::vector<Block> plan_of_cell() {
    std::vector<BlockKind> kinds{BlockKind::F};
    if (scenario_.memory.recompute) kinds.push_back(BlockKind::R);
    if (random_.between(0, 2) == 0) {
      kinds.push_back(BlockKind::B);
    } else {
      kinds.push_back(BlockKind::D);
      kinds.push_back(BlockKind::W);
    }
    std::vector<Block> blocks;
    for (const BlockKind kind : kinds) {
      const auto parts = static_cast<std::uint8_t>(random_.between(0, 2) == 0 ? 3 : 1);
      for (std::uint8_t part = 0; part < parts; ++part)
        blocks.push_back({kind, part, parts, ChunkId{0}, MicrobatchId{0}});
    }
    return blocks;
  }

  [[nodiscard]] bool is_done(BlockKind kind, int chunk, int microbatch) const {
    const auto found = std::ranges::find_if(open_, [&](const Cell& cell) {
      return cell.chunk == chunk && cell.microbatch == microbatch;
    });
    if (found == open_.end()) return true;
    for (std::size_t i = found->next; i < found->blocks.size(); ++i) {
      const BlockKind left = found->blocks[i].kind;
      if (left == kind || (is_backward(kind) && is_backward(left))) return false;
    }
    return true;
  }

  [[nodiscard]] bool is_ready(const Cell& cell) const {
    const BlockKind kind = cell.blocks[cell.next].kind;
    if (kind == BlockKind::F)
      return schedule_.is_first(cell.chunk) ||
             is_done(BlockKind::F, cell.chunk - 1, cell.microbatch);
    if (kind == BlockKind::W) return true;
    if (kind == BlockKind::R && schedule_.recompute_timing == RecomputeTiming::ahead) return true;
    return schedule_.is_last(cell.chunk) || is_done(BlockKind::D, cell.chunk + 1, cell.microbatch);
  }

  [[nodiscard]] Block block_of(const Cell& cell) const {
    Block next = cell.blocks[cell.next];
    next.chunk = cell.chunk;
    next.microbatch = cell.microbatch;
    return next;
  }
  [[nodiscard]] std::size_t device_of(const Cell& cell) const {
    return index(schedule_.device_of_chunk[cell.chunk]);
  }
  [[nodiscard]] bool fits(const schedule::ActivationModel& memory, const Cell& cell) const {
    return held_[device_of(cell)] + memory.effect(block_of(cell)).at_start <= limit_;
  }

  void take(const schedule::ActivationModel& memory, std::size_t choice) {
    Cell& cell = open_[choice];
    const Block next = block_of(cell);
    const schedule::MemoryEffect effect = memory.effect(next);
    held_[device_of(cell)] += effect.at_start + effect.at_end;
    schedule_.rows[device_of(cell)].push_back(next);
    if (++cell.next == cell.blocks.size())
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(choice));
  }

  Schedule schedule_;
  const Scenario& scenario_;
  Random& random_;
  Bytes limit_;
  std::vector<Bytes> held_;
  std::vector<Cell> open_;
};

}  // namespace longhaul::test
