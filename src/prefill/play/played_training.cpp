#include "prefill/play/played_training.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::prefill {

PlayedTraining::PlayedTraining(const TrainingGraph& graph, const PlayedTimes& times, IdleGpu& idle)
    : graph_{graph},
      times_{times},
      idle_{idle},
      nodes_(graph.nodes().size()),
      gpus_(to_size(graph.gpus())),
      blocks_(to_size(graph.gpus())),
      expected_(graph.nodes().size()) {
  for (std::int32_t rank = 0; rank < graph.gpus(); ++rank)
    gpus_[at(rank)].lengths.resize(graph.blocks(rank).size());
}

void PlayedTraining::run(std::int64_t iterations) {
  iterations_ = iterations;
  if (iterations == 0 || nodes_.empty()) return;
  begin_iteration();
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    if (started_ == nodes_.size() && event.at >= last_end_) {
      begin_ = last_end_;
      if (iteration_ + 1 == iterations_) break;
      events_.push(event);
      begin_iteration();
      continue;
    }
    handle(event);
  }
  begin_ = last_end_;
}

void PlayedTraining::begin_iteration() {
  ++iteration_;
  started_ = 0;
  first_open_ = 0;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i] = {.ready = begin_, .left = static_cast<std::uint32_t>(graph_.before(i).size())};
    if (nodes_[i].left == 0) events_.push({begin_, Kind::ready, i});
  }
  starts_.resize(starts_.size() + nodes_.size());
  for (std::uint32_t rank = 0; rank < gpus_.size(); ++rank) {
    Gpu& gpu = gpus_[rank];
    gpu.next = 0;
    gpu.lengths_before = gpu.lengths;
    events_.push({begin_, Kind::ask, rank});
  }
}

void PlayedTraining::handle(const Event& event) {
  switch (event.kind) {
    case Kind::block_end: {
      const std::int32_t rank = graph_.nodes()[event.what].rank;
      gpus_[at(rank)].computes = false;
      gpus_[at(rank)].open_since = event.at;
      events_.push({event.at, Kind::ask, static_cast<std::uint32_t>(rank)});
      break;
    }
    case Kind::prefill_end:
      if (gpus_[event.what].number == event.number)
        end_prefill(static_cast<std::int32_t>(event.what), event.at);
      break;
    case Kind::ready: node_ready(event.what, event.at); break;
    case Kind::ask: ask(static_cast<std::int32_t>(event.what), event.at); break;
  }
}

void PlayedTraining::node_ready(std::uint32_t node, Duration now) {
  const std::int32_t rank = graph_.nodes()[node].rank;
  if (rank < 0 || !gpus_[at(rank)].prefill_start) return start_node(node, now);
  Gpu& gpu = gpus_[at(rank)];
  gpu.waiting = node;
  const Duration stops = idle_.stops_at(rank, *gpu.prefill_start, gpu.prefill_end, now);
  if (stops >= gpu.prefill_end) return;
  gpu.prefill_end = stops;
  gpu.is_stopped = true;
  events_.push({stops, Kind::prefill_end, static_cast<std::uint32_t>(rank), ++gpu.number});
}

void PlayedTraining::start_node(std::uint32_t node, Duration now) {
  const TrainingGraph::Node& what = graph_.nodes()[node];
  NodeTimes& own = nodes_[node];
  Duration hold = what.hold, latency = what.latency;
  if (what.rank >= 0) {
    hold = scaled(hold, times_.block_factor(what.op, what.device, static_cast<int>(iteration_)));
    Gpu& gpu = gpus_[at(what.rank)];
    gpu.lengths[gpu.next] = now - gpu.open_since;
    ++gpu.next;
    gpu.computes = true;
    idle_.block_begins(what.rank, now);
    blocks_bound_ += now > own.ready;
    busy_ += hold;
    blocks_[at(what.rank)].push_back({now, now + hold});
    events_.push({now + hold, Kind::block_end, node});
  } else if (times_.weather != nullptr && what.kind != OpKind::compute) {
    const auto of = static_cast<std::uint64_t>(iteration_);
    hold = what.kind == OpKind::send ? times_.weather->hold(what.op, of, now)
                                     : times_.weather->collective(what.op, of, now);
    if (what.kind == OpKind::send) latency = times_.weather->latency(what.receive, of, now + hold);
  }
  own.start = now;
  own.hold_end = now + hold;
  own.end = own.hold_end + latency;
  own.started = true;
  ++started_;
  last_end_ = std::max(last_end_, own.end);
  if (what.rank >= 0) starts_[to_size(iteration_) * nodes_.size() + node] = now - begin_;
  tell(node);
  if (started_ == nodes_.size())  // so that the next iteration begins on time
    events_.push({last_end_, Kind::ask, 0});
}

void PlayedTraining::tell(std::uint32_t node) {
  for (const std::uint32_t later : graph_.after(node)) {
    NodeTimes& own = nodes_[later];
    if (--own.left > 0) continue;
    for (const TrainingGraph::Edge& edge : graph_.before(later)) {
      const NodeTimes& from = nodes_[edge.from];
      own.ready = std::max(own.ready, edge.moment == TrainingGraph::Moment::start ? from.start
                                      : edge.moment == TrainingGraph::Moment::end ? from.end
                                                                                  : from.hold_end);
    }
    events_.push({own.ready, Kind::ready, later});
  }
}

void PlayedTraining::ask(std::int32_t rank, Duration now) {
  Gpu& gpu = gpus_[at(rank)];
  if (gpu.computes || gpu.prefill_start || now < begin_) return;
  const IdleGpu::Offer offer = idle_.next(rank, now, *this);
  if (offer.starts) {
    gpu.prefill_start = now;
    gpu.prefill_end = offer.end;
    gpu.is_stopped = false;
    events_.push({offer.end, Kind::prefill_end, static_cast<std::uint32_t>(rank), ++gpu.number});
  } else if (offer.again) {
    events_.push({*offer.again, Kind::ask, static_cast<std::uint32_t>(rank)});
  }
}

void PlayedTraining::end_prefill(std::int32_t rank, Duration now) {
  Gpu& gpu = gpus_[at(rank)];
  idle_.ended(rank, *gpu.prefill_start, now, gpu.is_stopped);
  gpu.prefill_start.reset();
  if (gpu.waiting) {
    const std::uint32_t node = *gpu.waiting;
    gpu.waiting.reset();
    return start_node(node, now);
  }
  // Another stage of what ended may be due on any GPU.
  for (std::uint32_t other = 0; other < gpus_.size(); ++other)
    events_.push({now, Kind::ask, other});
}

void PlayedTraining::expect_upto(std::size_t last, Duration now) const {
  while (first_open_ < nodes_.size() && nodes_[first_open_].started &&
         nodes_[first_open_].end <= now) {
    expected_[first_open_] = nodes_[first_open_];
    ++first_open_;
  }
  for (std::size_t i = first_open_; i <= last; ++i) {
    const NodeTimes& real = nodes_[i];
    NodeTimes& own = expected_[i];
    const TrainingGraph::Node& what = graph_.nodes()[i];
    if (real.started && real.start <= now) {
      // It has begun: that is published, and its end when it has come.
      own.start = real.start;
      own.hold_end = real.hold_end <= now ? real.hold_end : std::max(now, real.start + what.hold);
      own.end = real.end <= now ? real.end : std::max(now, own.hold_end + what.latency);
      continue;
    }
    own.start = begin_;
    for (const TrainingGraph::Edge& edge : graph_.before(i)) {
      const NodeTimes& from = expected_[edge.from];
      own.start = std::max(own.start, edge.moment == TrainingGraph::Moment::start ? from.start
                                      : edge.moment == TrainingGraph::Moment::end ? from.end
                                                                                  : from.hold_end);
    }
    own.start = std::max(own.start, now);
    own.hold_end = own.start + what.hold;
    own.end = own.hold_end + what.latency;
  }
}

Duration PlayedTraining::expected_start(std::uint32_t node, Duration now) const {
  expect_upto(node, now);
  return expected_[node].start;
}

Duration PlayedTraining::expected_end(Duration now) const {
  expect_upto(nodes_.size() - 1, now);
  Duration end{};
  for (const NodeTimes& each : expected_) end = std::max(end, each.end);
  return end;
}

Duration PlayedTraining::next_block(std::int32_t rank, Duration now, Signals signals) const {
  const Gpu& gpu = gpus_[at(rank)];
  const auto blocks = graph_.blocks(rank);
  if (blocks.empty()) return Duration::max();
  const bool in_this = gpu.next < blocks.size();
  const std::uint32_t node = in_this ? blocks[gpu.next] : blocks.front();
  const Duration planned = graph_.nodes()[node].planned;
  switch (signals) {
    case Signals::plan: return begin_ + planned + (in_this ? Duration{} : graph_.makespan());
    case Signals::signals: {
      const auto& lengths = in_this ? gpu.lengths_before : gpu.lengths;
      if (iteration_ == 0) return now;  // no bubble has been seen yet
      return gpu.open_since + lengths[in_this ? gpu.next : 0];
    }
    case Signals::both: break;
  }
  return in_this ? expected_start(node, now) : expected_end(now) + planned;
}

Duration PlayedTraining::planned_to_played(Duration planned) const {
  const Duration period = graph_.makespan();
  const std::int64_t iteration = planned / period;
  if (iteration > iteration_) return Duration::max();
  return iteration < iteration_ ? begin_ : begin_ + planned % period;
}

}  // namespace longhaul::prefill
