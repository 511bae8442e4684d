#include "prefill/play/expected_training.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::prefill {

ExpectedTraining::ExpectedTraining(const TrainingGraph& graph, const Expectation& by)
    : graph_{graph}, by_{by}, place_(graph.nodes().size()) {
  for (std::int32_t rank = 0; rank < graph.gpus(); ++rank)
    for (std::size_t block = 0; block < graph.blocks(rank).size(); ++block)
      place_[graph.blocks(rank)[block]] = block;
  const auto nodes = graph.nodes();
  const auto map = [&](OpId op, std::uint32_t node) {
    if (index(op) >= node_of_.size()) node_of_.resize(index(op) + 1);
    node_of_[index(op)] = node;
  };
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    map(nodes[node].op, node);
    if (nodes[node].kind == OpKind::send) map(nodes[node].receive, node);
  }
  begin();
}

void ExpectedTraining::begin() {
  const std::size_t nodes = graph_.nodes().size();
  hold_end_.assign(nodes, kOpen);
  end_.assign(nodes, kOpen);
  expected_.assign(nodes, {});
  next_.assign(to_size(graph_.gpus()), 0);
  open_ = nodes;
  first_open_ = known_ = 0;
}

void ExpectedTraining::heed(OpId op, Duration end) {
  const std::uint32_t node = node_of_[index(op)];
  const TrainingGraph::Node& what = graph_.nodes()[node];
  known_ = first_open_;
  if (op == what.op) hold_end_[node] = end;
  if (what.kind == OpKind::send && op == what.op) return;
  if (end_[node] != kOpen) return;
  end_[node] = end;
  if (hold_end_[node] == kOpen) hold_end_[node] = end - what.latency;  // of the send not heard yet
  --open_;
  if (what.rank >= 0) ++next_[at(what.rank)];
}

/// Nodes stand after all that they wait for. Those that were expected at this instant are left as
/// they are.
void ExpectedTraining::expect_upto(std::size_t last, Duration now) {
  const auto nodes = graph_.nodes();
  if (now != known_at_) known_ = first_open_;
  known_at_ = now;
  for (std::size_t& i = known_; i <= last && i < nodes.size(); ++i) {
    Times& own = expected_[i];
    own.start = expected_start(i);
    own.hold_end = hold_end_[i] != kOpen ? hold_end_[i] : std::max(now, own.start + nodes[i].hold);
    own.end = end_[i] != kOpen ? end_[i] : std::max(now, own.hold_end + nodes[i].latency);
    if (i == first_open_ && end_[i] != kOpen) ++first_open_;
  }
}

Duration ExpectedTraining::expected_start(std::size_t node) const {
  const TrainingGraph::Node& own = graph_.nodes()[node];
  if (by_.signals == Signals::plan) return own.planned;
  if (by_.signals == Signals::signals && own.rank >= 0) {
    const std::size_t block = place_[node];
    if (block == 0) return own.planned;
    return expected_[graph_.blocks(own.rank)[block - 1]].hold_end + gap_before(own.rank, block);
  }
  Duration start{};
  for (const TrainingGraph::Edge& edge : graph_.before(node)) {
    const Times& from = expected_[edge.from];
    start = std::max(start, edge.moment == TrainingGraph::Moment::start ? from.start
                            : edge.moment == TrainingGraph::Moment::end ? from.end
                                                                        : from.hold_end);
  }
  return start;
}

/// How long the GPU was idle before the same block an iteration ago, where that is known.
Duration ExpectedTraining::gap_before(std::int32_t rank, std::size_t block) const {
  const auto& blocks = graph_.blocks(rank);
  const auto nodes = graph_.nodes();
  const std::size_t each = blocks.size() / to_size(by_.iterations);
  if (block > each && hold_end_[blocks[block - each]] != kOpen) {
    const std::uint32_t before = blocks[block - each];
    return std::max(Duration{},
                    hold_end_[before] - nodes[before].hold - hold_end_[blocks[block - each - 1]]);
  }
  const TrainingGraph::Node& last = nodes[blocks[block - 1]];
  return std::max(Duration{}, nodes[blocks[block]].planned - last.planned - last.hold);
}

Duration ExpectedTraining::opens(std::int32_t rank, std::size_t block, Duration now) {
  if (block == 0) return {};
  const std::uint32_t node = graph_.blocks(rank)[block - 1];
  expect_upto(node, now);
  return expected_[node].hold_end;
}

Duration ExpectedTraining::closes(std::int32_t rank, std::size_t block, Duration now) {
  if (block >= graph_.blocks(rank).size()) return end(now);
  const std::uint32_t node = graph_.blocks(rank)[block];
  expect_upto(node, now);
  return expected_[node].start;
}

Duration ExpectedTraining::end(Duration now) {
  if (expected_.empty()) return now;
  expect_upto(expected_.size() - 1, now);
  Duration last{};
  for (const Times& each : expected_) last = std::max(last, each.end);
  return last;
}

Duration ExpectedTraining::ready_at(std::int32_t rank) const {
  if (next_block(rank) == blocks(rank)) return Duration::max();
  Duration last{};
  for (const TrainingGraph::Edge& edge : graph_.before(graph_.blocks(rank)[next_block(rank)])) {
    const auto& known = edge.moment == TrainingGraph::Moment::end ? end_ : hold_end_;
    if (known[edge.from] == kOpen) return Duration::max();
    last = std::max(last, known[edge.from]);
  }
  return last;
}

IterationBubbles ExpectedTraining::bubbles(Duration now) {
  IterationBubbles all;
  all.period = end(now);
  all.gpus = graph_.gpus();
  for (std::int32_t rank = 0; rank < graph_.gpus(); ++rank)
    for (std::size_t block = next_block(rank); block <= blocks(rank); ++block) {
      const Duration from = opens(rank, block, now), to = closes(rank, block, now);
      if (to > from && to > now) all.bubbles.push_back({rank, from, to, -1, -1});
    }
  return all;
}

}  // namespace longhaul::prefill
