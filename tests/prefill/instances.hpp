#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "prefill/bubbles/bubbles.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::prefill {

/// A block of computation on a rank.
inline TimelineRow block_row(std::int32_t rank, std::int64_t op, Duration start, Duration end) {
  TimelineRow row;
  row.rank = rank;
  row.op = op;
  row.start_ns = start.count();
  row.end_ns = end.count();
  return row;
}

/// 2 stages, 2 microbatches, F 100 ms, B 200 ms, no links, under GPipe, written down by hand; of
/// several replicas each the same.
inline std::vector<TimelineRow> gpipe_rows(int replicas = 1) {
  std::vector<TimelineRow> rows;
  for (std::int32_t replica = 0; replica < replicas; ++replica) {
    const std::int32_t rank = 2 * replica;
    const std::int64_t op = 8 * replica;
    rows.push_back(block_row(rank, op, 0ms, 100ms));
    rows.push_back(block_row(rank, op + 1, 100ms, 200ms));
    rows.push_back(block_row(rank, op + 2, 500ms, 700ms));
    rows.push_back(block_row(rank, op + 3, 700ms, 900ms));
    rows.push_back(block_row(rank + 1, op + 4, 100ms, 200ms));
    rows.push_back(block_row(rank + 1, op + 5, 200ms, 300ms));
    rows.push_back(block_row(rank + 1, op + 6, 300ms, 500ms));
    rows.push_back(block_row(rank + 1, op + 7, 500ms, 700ms));
  }
  return rows;
}

/// The same under 1F1B.
inline std::vector<TimelineRow> one_f_one_b_rows() {
  return {block_row(0, 0, 0ms, 100ms),   block_row(0, 1, 100ms, 200ms),
          block_row(0, 2, 400ms, 600ms), block_row(0, 3, 700ms, 900ms),
          block_row(1, 4, 100ms, 200ms), block_row(1, 5, 200ms, 400ms),
          block_row(1, 6, 400ms, 500ms), block_row(1, 7, 500ms, 700ms)};
}

/// A model whose prefill of t tokens takes t times `unit`, to 1,000 tokens.
inline ServedModel linear_model(Duration unit, int stages = 1) {
  ServedModel model;
  model.name = "linear";
  model.stages = stages;
  model.profile = {{1, unit}, {1000, 1000 * unit}};
  return model;
}

/// `replicas` pipelines of `stages` devices in one datacenter that serve `model`.
inline Scenario serving_scenario(int stages, int replicas, ServedModel model) {
  Scenario scenario = uniform_scenario(stages, 2);
  scenario.parallel.replicas = replicas;
  scenario.placement.assign(static_cast<std::size_t>(stages * replicas), DatacenterId{0});
  scenario.served.push_back(std::move(model));
  return scenario;
}

/// Blocks of random lengths with random gaps between them, on each of `gpus`.
inline std::vector<TimelineRow> random_rows(Random& random, int gpus) {
  std::vector<TimelineRow> rows;
  for (std::int32_t rank = 0; rank < gpus; ++rank) {
    std::int64_t time = random.between(0, 6);
    const std::int64_t blocks = random.between(1, 3);
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::int64_t start = time + random.between(0, 8);
      const std::int64_t end = start + random.between(1, 5);
      rows.push_back(block_row(rank, std::ssize(rows), Duration{start}, Duration{end}));
      time = end;
    }
  }
  return rows;
}

}  // namespace longhaul::prefill
