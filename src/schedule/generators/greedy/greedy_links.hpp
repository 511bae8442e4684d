#pragma once

#include <algorithm>
#include <vector>

#include "base/index.hpp"
#include "schedule/generators/greedy/greedy.hpp"

namespace longhaul::schedule::families {

/// Which links and interfaces are busy until when, and messages that wait for their turn.
class GreedyLinks {
public:
  /// A message that is ready for resources which serve others too.
  struct Queued {
    Duration ready{};
    int taker = 0;  ///< chunk or node; ties go to the lower one
    BlockKind kind = BlockKind::F;
    const GreedyHop* hop = nullptr;
    MicrobatchId microbatch{};  ///< for a replay of rows alone
  };

  explicit GreedyLinks(int resources) : free_at_(to_size(resources)) {}

  /// When all that the message needs is free.
  [[nodiscard]] Duration free_at(const GreedyHop& hop) const {
    Duration free{};
    for (const int resource : hop.resources) free = std::max(free, free_at_[at(resource)]);
    return free;
  }
  /// Takes the resources as soon as they are free; returns the arrival.
  Duration transfer(const GreedyHop& hop, Duration ready) {
    const Duration end = std::max(ready, free_at(hop)) + hop.transfer;
    for (const int resource : hop.resources) free_at_[at(resource)] = end;
    return end + hop.latency;
  }

  void push(const Queued& message) {
    queue_.push_back(message);
    std::push_heap(queue_.begin(), queue_.end(), is_later);
  }
  [[nodiscard]] bool any_ready(Duration by) const {
    return !queue_.empty() && queue_.front().ready <= by;
  }
  Queued pop() {
    std::pop_heap(queue_.begin(), queue_.end(), is_later);
    const Queued first = queue_.back();
    queue_.pop_back();
    return first;
  }

private:
  static bool is_later(const Queued& a, const Queued& b) {
    if (a.ready != b.ready) return a.ready > b.ready;
    return a.taker != b.taker ? a.taker > b.taker : a.kind > b.kind;
  }

  std::vector<Duration> free_at_;  ///< index: resource
  std::vector<Queued> queue_;      ///< heap
};

}  // namespace longhaul::schedule::families
