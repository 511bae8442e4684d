#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <stdlib.h>  // NOLINT: mkdtemp is POSIX

#include "base/random.hpp"
#include "trace/timeline.hpp"

namespace longhaul::testing {

struct Bound {
  std::int64_t by = -1;
  BoundKind kind = BoundKind::start;
};
struct Times {
  std::int64_t ready, start, end;
};

/// Builds an iteration row by row. Rank 0 is in "west", all others in "east". Every method returns
/// the op id of its row; the row itself can be changed behind it.
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

/// What a random pipeline looks like.
struct Shape {
  int ranks = 4;
  int microbatches = 8;
  std::int64_t latency_ns = 50'000;
  std::int64_t transfer_ns = 20'000;
};

/// One iteration of GPipe with seeded block times, rows ordered by op id, lane by lane as lowering
/// makes them. Every rule of a trace holds.
inline void add_random_iteration(TimelineBuilder& builder, const Shape& shape, Random& random) {
  const int P = shape.ranks;
  const int M = shape.microbatches;
  const auto id = [&](int rank, int lane, int position) {
    // Ranks hold 2M blocks, then M of each lane that they have: send and recv, up and down.
    const auto messages_before = rank == 0 ? 0 : 2 + 4 * (rank - 1);
    const int first_lane = (2 * rank + messages_before) * M;
    return std::int64_t{first_lane + lane * M + position};
  };
  struct Planned {
    std::int64_t ready = 0, start = 0, end = 0, planned = 0;
    Bound bound;
  };
  const auto cells = static_cast<std::size_t>(P) * static_cast<std::size_t>(M);
  const auto at = [M](int rank, int m) {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(M) +
           static_cast<std::size_t>(m);
  };
  // Lanes of a rank: 0 F, 1 B (both of them "compute"), then those towards rank - 1 and rank + 1.
  const auto lane_of = [&](int rank, bool sends, int peer) {
    const int neighbours = (rank > 0 ? 1 : 0) + (rank + 1 < P ? 1 : 0);
    const int which = rank > 0 && peer > rank ? 1 : 0;
    return 2 + (sends ? 0 : neighbours) + which;
  };
  std::vector<std::vector<Planned>> block(2, std::vector<Planned>(cells));
  std::vector<std::vector<Planned>> wire(2, std::vector<Planned>(cells));  // leaving (rank, m)
  std::vector<std::int64_t> free_at(static_cast<std::size_t>(P), 0);
  for (int phase = 0; phase < 2; ++phase) {
    const auto p = static_cast<std::size_t>(phase);
    for (int step = 0; step < P; ++step) {
      const int rank = phase == 0 ? step : P - 1 - step;
      const int from = phase == 0 ? rank - 1 : rank + 1;
      for (int m = 0; m < M; ++m) {
        Planned& now = block[p][at(rank, m)];
        std::int64_t& free = free_at[static_cast<std::size_t>(rank)];
        now.start = now.ready = free;
        if (phase + m > 0)
          now.bound = {id(rank, m > 0 ? phase : 0, m > 0 ? m - 1 : M - 1), BoundKind::lane};
        if (from >= 0 && from < P) {
          const Planned& message = wire[p][at(from, m)];
          const std::int64_t arrival = message.end + shape.latency_ns;
          if (arrival > now.start) {
            now.start = now.ready = arrival;
            now.bound = {id(rank, lane_of(rank, false, from), m), BoundKind::dependency};
          }
        }
        now.planned = 100'000;
        now.end = free = now.start + random.between(80'000, 150'000);
        Planned& message = wire[p][at(rank, m)];
        message.ready = message.start = now.end;
        message.bound = {id(rank, phase, m), BoundKind::dependency};
        const int to = phase == 0 ? rank + 1 : rank - 1;
        if (m > 0 && wire[p][at(rank, m - 1)].end > now.end) {
          message.start = wire[p][at(rank, m - 1)].end;
          message.bound = {id(rank, lane_of(rank, true, to), m - 1), BoundKind::resource};
        }
        message.end = message.start + shape.transfer_ns;
      }
    }
  }
  const auto add_messages = [&](int rank, int peer, bool sends) {
    const int from = sends ? rank : peer;
    const int to = sends ? peer : rank;
    const auto p = static_cast<std::size_t>(from < to ? 0 : 1);
    for (int m = 0; m < M; ++m) {
      const Planned& w = wire[p][at(from, m)];
      if (sends) {
        builder.send(rank, peer, from, m, {w.ready, w.start, w.end}, w.bound);
      } else {
        const auto op = builder.recv(rank, peer, from, m, {0, w.start, w.end + shape.latency_ns},
                                     {id(from, lane_of(from, true, to), m), BoundKind::rendezvous});
        builder.row(op).planned_ns = shape.latency_ns;
      }
    }
  };
  for (int rank = 0; rank < P; ++rank) {
    for (int phase = 0; phase < 2; ++phase) {
      for (int m = 0; m < M; ++m) {
        const Planned& now = block[static_cast<std::size_t>(phase)][at(rank, m)];
        const auto op = builder.block(rank, phase == 0 ? RowKind::F : RowKind::B, rank, m,
                                      now.start, now.end, now.bound, phase == 0 ? 1000 : -1000);
        builder.row(op).planned_ns = now.planned;
      }
    }
    for (const bool sends : {true, false}) {
      if (rank > 0) add_messages(rank, rank - 1, sends);
      if (rank + 1 < P) add_messages(rank, rank + 1, sends);
    }
  }
}

inline Timeline random_timeline(std::uint64_t seed, const Shape& shape, int iterations = 1) {
  TimelineBuilder builder;
  Random random{seed};
  for (int i = 0; i < iterations; ++i) {
    builder.begin_iteration("gpipe", i);
    add_random_iteration(builder, shape, random);
  }
  return builder.timeline();
}

/// The rows of one rank, in the first `iteration`.
inline Timeline rows_of_rank(const Timeline& all, int iteration, int rank) {
  Timeline part = all;
  std::erase_if(part.rows, [&](const TimelineRow& row) {
    return row.rank != rank || row.iteration != iteration;
  });
  return part;
}

/// A directory of its own that goes away with the object.
class ScratchDirectory {
public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "longhaul-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

}  // namespace longhaul::testing
