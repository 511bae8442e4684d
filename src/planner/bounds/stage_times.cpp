#include "planner/bounds/stage_times.hpp"

#include <algorithm>
#include <numeric>

#include "base/index.hpp"
#include "planner/bounds/memory_turn.hpp"
#include "planner/bounds/release_curve.hpp"

namespace longhaul::planner {
namespace {

/// The messages of one boundary and direction, one after the other on their link.
struct Channel {
  Duration last{};  ///< begin of the one before
  bool used = false;
  /// Arrival of the next message, which is ready at `ready`. Times may run backwards from the end.
  Duration pass(const RelaxedHop& hop, Duration ready) {
    last = used ? std::max(ready, last + hop.transfer) : ready;
    used = true;
    return last + hop.transfer + hop.latency;
  }
};

/// Heads, microbatch count by microbatch count: the k-th block of a kind and chunk waits for the
/// (k-1)-th, for the k-th input, for the gather, and for memory.
class Heads {
public:
  Heads(const Relaxation& relaxation, const RelaxedReplica& replica, MemoryLimit memory,
        std::vector<StageTimes>& times)
      : chunks_{replica.chunks},
        chunks_of_copy_{relaxation.chunks_of_copy},
        keep_memory_{memory == MemoryLimit::kept},
        times_{times},
        to_next_(chunks_.size()),
        to_previous_(chunks_.size()) {
    for (const RelaxedChunk& chunk : chunks_) turns_.emplace_back(chunk, relaxation.limit);
    for (std::size_t c = 0; c < chunks_.size(); ++c) curves_.push_back(curve(c, relaxation.limit));
  }

  void fill(int first) {
    const int count = chunks_[at(first)].count;
    for (int k = 0; k < count; ++k) {
      Duration arrival{};
      for (int chunk = first; chunk < first + chunks_of_copy_; ++chunk)
        arrival = forward(chunk, at(k), arrival);
      for (int chunk = first + chunks_of_copy_ - 1; chunk >= first; --chunk)
        arrival = gradient(chunk, at(k), arrival);
    }
  }

private:
  /// The curve of a chunk and those before it on its device, in one copy.
  [[nodiscard]] ReleaseCurve curve(std::size_t c, Bytes limit) const {
    std::vector<const RelaxedChunk*> chunks;
    for (std::size_t other = c - c % at(chunks_of_copy_); other <= c; ++other) {
      if (chunks_[other].device == chunks_[c].device) chunks.push_back(&chunks_[other]);
    }
    return {chunks, limit};
  }

  /// Returns when its output arrives at the next chunk; after the last one, its end.
  Duration forward(int c, std::size_t k, Duration arrival) {
    const RelaxedChunk& chunk = chunks_[at(c)];
    StageTimes& times = times_[at(c)];
    Duration start = std::max(arrival, chunk.gather);
    if (k > 0) start = std::max(start, times.forward_head[k - 1] + chunk.forward);
    if (keep_memory_) {
      start = std::max({start, turns_[at(c)].earliest_start(k, times.gradient_head),
                        curves_[at(c)].earliest_start(static_cast<std::int64_t>(k))});
    }
    times.forward_head[k] = start;
    return to_next_[at(c)].pass(chunk.next, start + chunk.forward);
  }

  Duration gradient(int c, std::size_t k, Duration arrival) {
    const RelaxedChunk& chunk = chunks_[at(c)];
    StageTimes& times = times_[at(c)];
    // The device has run k + 1 Fs and k gradients of this chunk since the first F started.
    const auto rank = static_cast<std::int64_t>(k);
    const Duration work = times.forward_head[0] + (rank + 1) * (chunk.forward + chunk.recompute) +
                          rank * chunk.gradient;
    Duration start =
        std::max({arrival, work, times.forward_head[k] + chunk.forward + chunk.recompute});
    if (k > 0) start = std::max(start, times.gradient_head[k - 1] + chunk.gradient);
    times.gradient_head[k] = start;
    if (keep_memory_) add_to_curves(c, start);
    return to_previous_[at(c)].pass(chunk.previous, start + chunk.gradient);
  }

  void add_to_curves(int c, Duration start) {
    const int end = c - c % chunks_of_copy_ + chunks_of_copy_;
    for (int other = c; other < end; ++other) {
      if (chunks_[at(other)].device == chunks_[at(c)].device)
        curves_[at(other)].add_gradient(chunks_[at(c)], start);
    }
  }

  const std::vector<RelaxedChunk>& chunks_;
  int chunks_of_copy_;
  bool keep_memory_;
  std::vector<StageTimes>& times_;
  std::vector<Channel> to_next_, to_previous_;
  std::vector<MemoryTurn> turns_;
  std::vector<ReleaseCurve> curves_;
};

/// Tails, from the last block of a kind and chunk to the first: the same with time reversed.
class Tails {
public:
  Tails(const Relaxation& relaxation, const RelaxedReplica& replica, std::vector<StageTimes>& times)
      : chunks_{replica.chunks},
        chunks_of_copy_{relaxation.chunks_of_copy},
        times_{times},
        to_next_(chunks_.size()),
        to_previous_(chunks_.size()) {}

  void fill(int first) {
    const int count = chunks_[at(first)].count;
    for (int left = 1; left <= count; ++left) {
      Duration after{};  // what must follow the end of the block, its message included
      for (int chunk = first; chunk < first + chunks_of_copy_; ++chunk)
        after = gradient(chunk, left, count, after);
      for (int chunk = first + chunks_of_copy_ - 1; chunk >= first; --chunk)
        after = forward(chunk, left, count, after);
    }
  }

private:
  Duration gradient(int c, int left, int count, Duration after) {
    const RelaxedChunk& chunk = chunks_[at(c)];
    std::vector<Duration>& tails = times_[at(c)].gradient_tail;
    const auto k = at(count - left);
    // `left` gradients have not started, so their weights have not either, nor the reduction.
    const Duration work = left * (chunk.gradient + chunk.weight) + chunk.reduction;
    Duration tail = std::max(chunk.gradient + after, work);
    if (left > 1) tail = std::max(tail, tails[k + 1] + chunk.gradient);
    tails[k] = tail;
    if (c + 1 == static_cast<int>(chunks_.size())) return tail;
    return to_next_[at(c)].pass(chunks_[at(c + 1)].previous, tail);
  }

  Duration forward(int c, int left, int count, Duration after) {
    const RelaxedChunk& chunk = chunks_[at(c)];
    std::vector<Duration>& tails = times_[at(c)].forward_tail;
    const auto k = at(count - left);
    const bool last = c % chunks_of_copy_ == chunks_of_copy_ - 1;
    const Duration turn = chunk.recompute + times_[at(c)].gradient_tail[k];
    const Duration work =
        left * (chunk.forward + chunk.recompute + chunk.gradient + chunk.weight) + chunk.reduction;
    Duration tail =
        std::max({chunk.forward + turn, work, last ? Duration::zero() : chunk.forward + after});
    if (left > 1) tail = std::max(tail, tails[k + 1] + chunk.forward);
    tails[k] = tail;
    if (c == 0) return tail;
    return to_previous_[at(c)].pass(chunks_[at(c - 1)].next, tail);
  }

  const std::vector<RelaxedChunk>& chunks_;
  int chunks_of_copy_;
  std::vector<StageTimes>& times_;
  std::vector<Channel> to_next_, to_previous_;
};

}  // namespace

std::vector<StageTimes> stage_times(const Relaxation& relaxation, const RelaxedReplica& replica,
                                    MemoryLimit memory) {
  std::vector<StageTimes> times;
  for (const RelaxedChunk& chunk : replica.chunks) {
    const std::vector<Duration> none(at(chunk.count), Duration::zero());
    times.push_back({none, none, none, none});
  }
  Heads heads{relaxation, replica, memory, times};
  Tails tails{relaxation, replica, times};
  for (int first = 0; first < static_cast<int>(times.size()); first += relaxation.chunks_of_copy) {
    heads.fill(first);
    tails.fill(first);
  }
  return times;
}

std::vector<Duration> round_trips(const Relaxation& relaxation, const RelaxedReplica& replica) {
  std::vector<Duration> trips(replica.chunks.size());
  for (std::size_t c = trips.size(); c-- > 0;) {
    const RelaxedChunk& chunk = replica.chunks[c];
    trips[c] = chunk.recompute;
    const auto stage = static_cast<int>(c) % relaxation.chunks_of_copy;
    if (stage + 1 == relaxation.chunks_of_copy) continue;
    const RelaxedChunk& next = replica.chunks[c + 1];
    trips[c] =
        std::max(trips[c], chunk.next.transfer + chunk.next.latency + next.forward + trips[c + 1] +
                               next.gradient + next.previous.transfer + next.previous.latency);
  }
  return trips;
}

}  // namespace longhaul::planner
