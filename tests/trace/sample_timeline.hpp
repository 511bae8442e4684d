#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::testing {

struct Bound {
  std::int64_t by = -1;
  BoundKind kind = BoundKind::start;
};
struct Times {
  std::int64_t ready, start, end;
};

/// Builds an iteration row by row. Rank 0 is in "west", all others in "east". Every method returns
/// the op id of its row; the row itself can be changed afterwards.
class TimelineBuilder {
public:
  TimelineBuilder() { timeline_.datacenters = {"west", "east"}; }

  std::int64_t block(int rank, RowKind kind, int chunk, int microbatch, std::int64_t start,
                     std::int64_t end, Bound bound = {}, std::int64_t size_bytes = 0) {
    const std::int64_t op = add(rank, kind, "compute", {start, start, end}, bound);
    name(op, chunk, microbatch, -1);
    row(op).size_bytes = size_bytes;
    return op;
  }
  std::int64_t send(int rank, int peer, int chunk, int microbatch, Times times, Bound bound) {
    const std::int64_t op = add(rank, RowKind::send, "send>" + std::to_string(peer), times, bound);
    name(op, chunk, microbatch, peer);
    return op;
  }
  std::int64_t recv(int rank, int peer, int chunk, int microbatch, Times times, Bound bound) {
    const std::int64_t op = add(rank, RowKind::recv, "recv<" + std::to_string(peer), times, bound);
    name(op, chunk, microbatch, peer);
    return op;
  }
  std::int64_t collective(int rank, RowKind kind, Times times, Bound bound = {}) {
    return add(rank, kind, "collective", times, bound);
  }

  /// Rows that follow belong to this iteration.
  void begin_iteration(const std::string& schedule, int iteration) {
    schedule_ = index_of(timeline_.schedules, schedule);
    iteration_ = iteration;
    first_ = timeline_.rows.size();
  }
  TimelineRow& row(std::int64_t op) {
    return timeline_.rows[first_ + static_cast<std::size_t>(op)];
  }
  /// Row of op i is at i: for timelines of one iteration.
  [[nodiscard]] const Timeline& timeline() const { return timeline_; }

private:
  static std::int32_t index_of(std::vector<std::string>& names, const std::string& name) {
    const auto at = std::ranges::find(names, name);
    const auto index = static_cast<std::int32_t>(at - names.begin());
    if (at == names.end()) names.push_back(name);
    return index;
  }

  std::int64_t add(int rank, RowKind kind, const std::string& lane, Times times, Bound bound) {
    if (timeline_.schedules.empty()) begin_iteration("hand-made", 0);
    TimelineRow row;
    row.schedule = schedule_;
    row.iteration = iteration_;
    row.op = static_cast<std::int64_t>(timeline_.rows.size() - first_);
    row.rank = row.device = rank;
    row.datacenter = rank == 0 ? 0 : 1;
    row.lane = index_of(timeline_.lanes, lane);
    row.kind = kind;
    row.planned_ns = times.end - times.start;
    row.ready_ns = times.ready;
    row.start_ns = times.start;
    row.end_ns = times.end;
    row.bound_by = bound.by;
    row.bound_kind = bound.kind;
    timeline_.rows.push_back(row);
    return row.op;
  }
  void name(std::int64_t op, int chunk, int microbatch, int peer) {
    row(op).chunk = chunk;
    row(op).microbatch = microbatch;
    row(op).peer = peer;
  }

  Timeline timeline_;
  std::size_t first_ = 0;
  std::int32_t schedule_ = 0, iteration_ = 0;
};

/// Shape of a random pipeline.
struct Shape {
  int ranks = 4;
  int microbatches = 8;
  std::int64_t latency_ns = 50'000;
  std::int64_t transfer_ns = 20'000;
};

/// Iterations of GPipe with seeded block times, rows ordered by op id, lane by lane as lowering
/// makes them. Every rule of a trace holds.
class RandomPipeline {
public:
  RandomPipeline(const Shape& shape, std::uint64_t seed) : shape_{shape}, random_{seed} {}

  void add_iteration(TimelineBuilder& builder) {
    for (Phase& phase : phases_) {
      phase.blocks.assign(cell(shape_.ranks, 0), {});
      phase.messages.assign(cell(shape_.ranks, 0), {});
    }
    free_at_.assign(static_cast<std::size_t>(shape_.ranks), 0);
    for (const int step : {+1, -1}) {
      const int first = step > 0 ? 0 : shape_.ranks - 1;
      for (int rank = first; 0 <= rank && rank < shape_.ranks; rank += step) {
        for (int m = 0; m < shape_.microbatches; ++m) run_block(rank, step, m);
      }
    }
    for (int rank = 0; rank < shape_.ranks; ++rank) add_rows(builder, rank);
  }

private:
  struct Planned {
    std::int64_t ready = 0, start = 0, end = 0;
    Bound bound;
  };
  /// Forwards go up (step +1), backwards down (step -1).
  struct Phase {
    std::vector<Planned> blocks, messages;  ///< of (rank, microbatch), messages by their sender
  };

  [[nodiscard]] std::size_t cell(int rank, int microbatch) const {
    return static_cast<std::size_t>(rank * shape_.microbatches + microbatch);
  }
  Phase& phase(int step) { return phases_[step > 0 ? 0 : 1]; }

  /// Ranks hold 2M blocks, then M ops of each lane that they have: sends down and up, receives.
  [[nodiscard]] std::int64_t op(int rank, int lane, int position) const {
    const int message_lanes = rank == 0 ? 0 : 2 + 4 * (rank - 1);
    return (2 * rank + message_lanes + lane) * shape_.microbatches + position;
  }
  [[nodiscard]] static int block_lane(int step) { return step > 0 ? 0 : 1; }
  [[nodiscard]] int message_lane(int rank, bool sends, int peer) const {
    const int neighbours = (rank > 0 ? 1 : 0) + (rank + 1 < shape_.ranks ? 1 : 0);
    return 2 + (sends ? 0 : neighbours) + (rank > 0 && peer > rank ? 1 : 0);
  }

  void run_block(int rank, int step, int m) {
    Planned& block = phase(step).blocks[cell(rank, m)];
    std::int64_t& free = free_at_[static_cast<std::size_t>(rank)];
    block.start = free;
    if (m > 0) block.bound = {op(rank, block_lane(step), m - 1), BoundKind::lane};
    if (m == 0 && step < 0)
      block.bound = {op(rank, block_lane(+1), shape_.microbatches - 1), BoundKind::lane};
    const int from = rank - step;
    if (0 <= from && from < shape_.ranks) {
      const std::int64_t arrival = phase(step).messages[cell(from, m)].end + shape_.latency_ns;
      if (arrival > block.start) {
        block.start = arrival;
        block.bound = {op(rank, message_lane(rank, false, from), m), BoundKind::dependency};
      }
    }
    block.ready = block.start;
    block.end = free = block.start + random_.between(80'000, 150'000);
    send_on(rank, step, m);
  }

  void send_on(int rank, int step, int m) {
    Planned& message = phase(step).messages[cell(rank, m)];
    message.ready = message.start = phase(step).blocks[cell(rank, m)].end;
    message.bound = {op(rank, block_lane(step), m), BoundKind::dependency};
    if (m > 0 && phase(step).messages[cell(rank, m - 1)].end > message.ready) {
      message.start = phase(step).messages[cell(rank, m - 1)].end;
      message.bound = {op(rank, message_lane(rank, true, rank + step), m - 1), BoundKind::resource};
    }
    message.end = message.start + shape_.transfer_ns;
  }

  void add_rows(TimelineBuilder& builder, int rank) {
    for (const int step : {+1, -1}) {
      for (int m = 0; m < shape_.microbatches; ++m) {
        const Planned& block = phase(step).blocks[cell(rank, m)];
        const auto id = builder.block(rank, step > 0 ? RowKind::F : RowKind::B, rank, m,
                                      block.start, block.end, block.bound, step * 1000);
        builder.row(id).planned_ns = 100'000;
      }
    }
    for (const bool sends : {true, false}) {
      for (const int peer : {rank - 1, rank + 1}) {
        if (0 <= peer && peer < shape_.ranks) add_messages(builder, rank, peer, sends);
      }
    }
  }

  void add_messages(TimelineBuilder& builder, int rank, int peer, bool sends) {
    const int from = sends ? rank : peer;
    const int to = sends ? peer : rank;
    for (int m = 0; m < shape_.microbatches; ++m) {
      const Planned& w = phase(to - from).messages[cell(from, m)];
      if (sends) {
        builder.send(rank, peer, from, m, {w.ready, w.start, w.end}, w.bound);
        continue;
      }
      const Bound by_send{op(from, message_lane(from, true, to), m), BoundKind::dependency};
      const auto id =
          builder.recv(rank, peer, from, m, {0, w.start, w.end + shape_.latency_ns}, by_send);
      builder.row(id).planned_ns = shape_.latency_ns;
    }
  }

  Shape shape_;
  Random random_;
  std::array<Phase, 2> phases_;
  std::vector<std::int64_t> free_at_;  ///< of each rank
};

inline Timeline random_timeline(std::uint64_t seed, const Shape& shape, int iterations = 1) {
  TimelineBuilder builder;
  RandomPipeline pipeline{shape, seed};
  for (int i = 0; i < iterations; ++i) {
    builder.begin_iteration("gpipe", i);
    pipeline.add_iteration(builder);
  }
  return builder.timeline();
}

/// Gives about every other row something in each column of schemas 3 and 4.
inline void add_columns_of_schema_3(Timeline& timeline, std::uint64_t seed) {
  timeline.collectives = {"all_reduce of chunk 0", "all_gather of chunk 1"};
  timeline.operators = {"attention", "mlp", "norm"};
  Random random{seed};
  const auto number = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random.between(low, high));
  };
  for (TimelineRow& row : timeline.rows) {
    if (random.between(0, 1) == 0) continue;
    if (!is_message(row.kind)) {  // both sides of a message would have to agree
      row.collective = number(-1, 1);
      row.step = number(-1, 40);
    }
    row.level = number(-1, kCountOf<NetworkLevel> - 1);
    row.layer = number(-1, 80);
    row.operator_index = number(-1, 2);
    row.slices = number(1, 4);
    row.slice = number(0, row.slices - 1);
    const std::int32_t outcome = number(0, kCountOf<Outcome> - 1);
    if (!is_message(row.kind)) row.outcome = outcome;
    row.version = number(-1, 3);
    row.request = number(-1, 9);
    row.tokens = number(-1, 8192);
  }
}

/// The rows of one rank, in the first `iteration`.
inline Timeline rows_of_rank(const Timeline& all, int iteration, int rank) {
  Timeline part = all;
  std::erase_if(part.rows, [&](const TimelineRow& row) {
    return row.rank != rank || row.iteration != iteration;
  });
  return part;
}

}  // namespace longhaul::testing
