#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/generators/cell/cell.hpp"
#include "schedule/generators/cell/cell_earliest.hpp"
#include "schedule/generators/greedy/greedy_clock.hpp"
#include "schedule/generators/greedy/greedy_links.hpp"

namespace longhaul::schedule::families {
namespace {

constexpr Duration kNeverFree = GreedyClock::kNever;

/// Plays the pipelines of a cell through in time. The node that can act next does; ties go to the
/// lower pipeline, its LocalDPRank. Microbatches of a stage run in order in each kind of block, so
/// that counters take the place of queues.
class CellRun {
public:
  /// `earliest`: told of every block; may be nullptr.
  CellRun(const CellProblem& problem, const CellRules& rules, EarliestTimes* earliest = nullptr)
      : problem_{problem},
        rules_{rules},
        earliest_{earliest},
        stages_{problem.stages.size()},
        nodes_(to_size(problem.pipelines) * stages_),
        inputs_(nodes_.size() * at(problem.microbatches), kNeverFree),
        gradients_(inputs_.size(), kNeverFree),
        due_(inputs_.size(), kNeverFree),
        clock_{nodes_.size()},
        links_{problem.resources} {
    times_.rows.resize(nodes_.size());
    times_.starts.resize(nodes_.size());
    times_.transfers.resize(problem.turns.size());
    const std::size_t blocks = 3 * at(problem.microbatches);
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      times_.rows[node].reserve(blocks);
      times_.starts[node].reserve(blocks);
      if (node % stages_ != 0) continue;
      std::fill_n(inputs_.begin() + slot(node, MicrobatchId{}), problem.microbatches,
                  stage(node).release);
      clock_.set(node, stage(node).release);
    }
  }

  /// Stops, with rows that are not complete, where the earliest end is `enough`.
  CellTimes run(Duration enough = kNeverFree) {
    for (;;) {
      if (earliest_ != nullptr && earliest_->bound() >= enough) return std::move(times_);
      const std::size_t node = clock_.earliest();
      const Duration now = clock_.time(node);
      if (links_.any_ready(now)) {
        const GreedyLinks::Queued message = links_.pop();
        deliver(at(message.taker), message.kind, links_.transfer(*message.hop, message.ready));
      } else if (now == kNeverFree) {
        return finish();
      } else {
        act(node, now);
      }
    }
  }

private:
  struct Node {
    int forwards = 0;  ///< done; so for the others
    int recomputes = 0;
    int backwards = 0;
    int inputs = 0;  ///< that arrived or are on their way
    int gradients = 0;
    Duration free_at{};
    Bytes held;
  };

  [[nodiscard]] std::ptrdiff_t slot(std::size_t node, MicrobatchId microbatch) const {
    return static_cast<std::ptrdiff_t>(node * at(problem_.microbatches) + at(microbatch));
  }
  [[nodiscard]] const CellStage& stage(std::size_t node) const {
    return problem_.stages[node % stages_];
  }
  [[nodiscard]] Duration time_of(const std::vector<Duration>& times, std::size_t node,
                                 MicrobatchId microbatch) const {
    return times[at(slot(node, microbatch))];
  }

  /// When a block of this length may start for the sake of its message.
  [[nodiscard]] Duration gate(const CellHop& hop, Duration length) const {
    if (!rules_.at_once || hop.node < 0) return Duration::zero();
    return links_.free_at(hop.way) - hop.scatter - length;
  }
  [[nodiscard]] Duration next_forward(std::size_t n) const {
    const Node& node = nodes_[n];
    const CellStage& costs = stage(n);
    if (node.forwards == problem_.microbatches) return kNeverFree;
    // The next B finds room for what its R takes.
    const Bytes reserve = node.recomputes == node.backwards ? costs.rest : Bytes{};
    if (node.held + costs.kept + reserve > problem_.limit) return kNeverFree;
    return std::max(time_of(inputs_, n, MicrobatchId{node.forwards}),
                    gate(problem_.activations[n], costs.forward));
  }
  [[nodiscard]] Duration next_backward(std::size_t n) const {
    const Node& node = nodes_[n];
    const int done = stage(n).recomputes ? node.recomputes : node.forwards;
    if (node.backwards == done) return kNeverFree;
    return std::max(time_of(gradients_, n, MicrobatchId{node.backwards}),
                    gate(problem_.gradients[n], stage(n).backward));
  }
  /// An R that is due, before any F.
  [[nodiscard]] Duration next_recompute(std::size_t n) const {
    const Node& node = nodes_[n];
    if (!stage(n).recomputes || node.recomputes == node.forwards) return kNeverFree;
    if (node.held + stage(n).rest > problem_.limit) return kNeverFree;
    return time_of(rules_.recompute == RecomputePolicy::timed ? due_ : gradients_, n,
                   MicrobatchId{node.recomputes});
  }
  /// May the next R run ahead, in a gap until `next`?
  [[nodiscard]] bool fills_gap(std::size_t n, Duration now, Duration next) const {
    const Node& node = nodes_[n];
    const CellStage& costs = stage(n);
    if (rules_.recompute != RecomputePolicy::idle || !costs.recomputes) return false;
    if (node.recomputes == node.forwards || next - now < costs.recompute) return false;
    // Neither an F that comes later nor another R of it may want the room.
    const Bytes wanted = node.forwards < problem_.microbatches ? costs.kept : Bytes{};
    return node.held + costs.rest + wanted <= problem_.limit;
  }

  /// Lets the nodes of the stage act that may act now and have done fewer F.
  void yield_to_others(std::size_t n, Duration now) {
    for (std::size_t other = n % stages_; other < nodes_.size(); other += stages_) {
      const bool fewer = nodes_[other].forwards < nodes_[n].forwards;
      if (fewer && clock_.time(other) <= now) act(other, now);
    }
  }

  void act(std::size_t n, Duration now) {
    if (rules_.even) yield_to_others(n, now);
    const Duration backward = next_backward(n);
    if (backward <= now) return run_backward(n, now);
    const Duration recompute = next_recompute(n);
    if (recompute <= now) return run_recompute(n, now);
    const Duration forward = next_forward(n);
    if (forward <= now) return run_forward(n, now);
    const Duration next = std::min({backward, recompute, forward});
    if (fills_gap(n, now, next)) return run_recompute(n, now);
    clock_.set(n, next);
  }

  Duration place(std::size_t n, BlockKind kind, MicrobatchId microbatch, Duration start,
                 Duration length) {
    times_.rows[n].push_back(
        {.kind = kind, .chunk = ChunkId{n % stages_}, .microbatch = microbatch});
    times_.starts[n].push_back(start);
    if (earliest_ != nullptr) earliest_->add(n, kind, microbatch);
    nodes_[n].free_at = start + length;
    clock_.set(n, start + length);
    return start + length;
  }

  void run_forward(std::size_t n, Duration start) {
    Node& node = nodes_[n];
    const Duration end =
        place(n, BlockKind::F, MicrobatchId{node.forwards++}, start, stage(n).forward);
    node.held += stage(n).kept;
    if (problem_.activations[n].node < 0) {
      deliver(n, BlockKind::B, end);
    } else {
      send(n, problem_.activations[n], BlockKind::F, end);
    }
  }
  void run_recompute(std::size_t n, Duration start) {
    Node& node = nodes_[n];
    place(n, BlockKind::R, MicrobatchId{node.recomputes++}, start, stage(n).recompute);
    node.held += stage(n).rest;
  }
  void run_backward(std::size_t n, Duration start) {
    Node& node = nodes_[n];
    const Duration end =
        place(n, BlockKind::B, MicrobatchId{node.backwards++}, start, stage(n).backward);
    node.held -= stage(n).kept + stage(n).rest;
    const CellHop& hop = problem_.gradients[n];
    if (hop.node < 0) return;
    // Queued messages are expected to find their way free.
    const Duration arrival =
        std::max(end + hop.scatter, links_.free_at(hop.way)) + hop.way.transfer + hop.way.latency;
    announce(at(hop.node), MicrobatchId{nodes_[n].backwards - 1}, arrival);
    send(n, hop, BlockKind::B, end);
  }

  /// A gradient will be there at `arrival`.
  void announce(std::size_t n, MicrobatchId microbatch, Duration arrival) {
    const Duration due = arrival - stage(n).recompute;
    due_[at(slot(n, microbatch))] = due;
    wake(n, due);
  }

  void send(std::size_t n, const CellHop& hop, BlockKind kind, Duration ready) {
    if (hop.way.queued) {
      return links_.push({ready, hop.node, kind, &hop.way});
    }
    const Duration arrival = links_.transfer(hop.way, ready + hop.scatter);
    if (hop.turns >= 0) {
      const Duration end = arrival - hop.way.latency;
      times_.transfers[at(hop.turns)].push_back(
          {static_cast<int>(n / stages_), times_.rows[n].back(), end - hop.way.transfer, end});
    }
    deliver(at(hop.node), kind, arrival);
  }

  void deliver(std::size_t n, BlockKind kind, Duration arrival) {
    Node& node = nodes_[n];
    if (kind == BlockKind::F) {
      arrival = std::max(arrival, stage(n).release);
      inputs_[at(slot(n, MicrobatchId{node.inputs++}))] = arrival;
    } else {
      gradients_[at(slot(n, MicrobatchId{node.gradients++}))] = arrival;
    }
    wake(n, arrival);
  }

  void wake(std::size_t n, Duration time) {
    const Duration begin = std::max(nodes_[n].free_at, time);
    if (begin < clock_.time(n)) clock_.set(n, begin);
  }

  CellTimes finish() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      LONGHAUL_ASSERT(nodes_[n].backwards == problem_.microbatches,
                      "node {} stopped at F {}, R {}, B {} of {}", n, nodes_[n].forwards,
                      nodes_[n].recomputes, nodes_[n].backwards, problem_.microbatches);
    }
    return std::move(times_);
  }

  const CellProblem& problem_;
  const CellRules& rules_;
  EarliestTimes* earliest_;
  std::size_t stages_;
  std::vector<Node> nodes_;
  std::vector<Duration> inputs_;  ///< index: slot(); when it is there
  std::vector<Duration> gradients_;
  std::vector<Duration> due_;  ///< when an R must start to end with its gradient's arrival
  GreedyClock clock_;
  GreedyLinks links_;
  CellTimes times_;
};

}  // namespace

CellTimes run_cell(const CellProblem& problem, const CellRules& rules) {
  return CellRun{problem, rules}.run();
}

Duration earliest_end(const CellProblem& problem, const CellRules& rules,
                      std::span<const LeastHop> hops, Duration enough) {
  EarliestTimes earliest{problem, hops};
  static_cast<void>(CellRun{problem, rules, &earliest}.run(enough));
  return earliest.bound();
}

}  // namespace longhaul::schedule::families
