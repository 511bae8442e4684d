#include "schedule/generators/greedy/row_times.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::schedule::families {

RowTimes::RowTimes(const GreedyProblem& problem, std::span<const std::vector<Block>> rows)
    : problem_{problem},
      rows_{rows},
      devices_(rows.size()),
      wgrads_end_(problem.chunks.count()),
      clock_{rows.size()},
      links_{problem.resources} {
  std::size_t arrivals = 0;
  for (const GreedyChunk& chunk : problem.chunks) {
    first_.push_back(arrivals);
    arrivals += 2 * at(chunk.count);
  }
  arrivals_.resize(arrivals, kNever);
  for (const ChunkId c : first_.ids()) {
    const bool is_first = c == 0 || !problem_.chunks[previous(c)].activation.is_taken();
    if (!is_first) continue;
    std::fill_n(arrivals_.begin() + static_cast<std::ptrdiff_t>(first_[c]),
                problem_.chunks[c].count, problem_.chunks[c].release);
  }
  for (std::size_t d = 0; d < devices_.size(); ++d) clock_.set(d, begin(d));
}

Duration RowTimes::run() {
  for (;;) {
    const std::size_t device = clock_.earliest();
    const Duration now = clock_.time(device);
    if (links_.any_ready(now)) {
      deliver_queued();
      continue;
    }
    if (now == kNever) break;
    act(device, now);
  }
  for (std::size_t d = 0; d < devices_.size(); ++d)
    if (devices_[d].done < rows_[d].size()) return kNever;
  return reductions_end(problem_, wgrads_end_);
}

std::size_t RowTimes::slot(ChunkId chunk, BlockKind kind, MicrobatchId microbatch) const {
  const GreedyChunk& given = problem_.chunks[chunk];
  const std::size_t nth = at((microbatch - given.first) / given.stride);
  return first_[chunk] + nth + (kind == BlockKind::F ? 0 : at(given.count));
}

Duration RowTimes::begin(std::size_t device) const {
  const Device& state = devices_[device];
  if (state.done == rows_[device].size()) return kNever;
  const Block& block = rows_[device][state.done];
  if (block.kind == BlockKind::W) return state.free_at;
  return std::max(state.free_at, arrivals_[slot(block.chunk, block.kind, block.microbatch)]);
}

Duration RowTimes::length(const Block& block) const {
  const GreedyChunk& chunk = problem_.chunks[block.chunk];
  switch (block.kind) {
    case BlockKind::F: return chunk.forward;
    case BlockKind::R: return chunk.recompute;
    case BlockKind::D: return chunk.dgrad;
    case BlockKind::W:
      return std::accumulate(chunk.wgrad.begin(), chunk.wgrad.end(), Duration::zero());
    case BlockKind::B: break;
  }
  LONGHAUL_ASSERT(false, "{} in rows of split backwards", to_text(block));
  return {};
}

void RowTimes::act(std::size_t device, Duration now) {
  Device& state = devices_[device];
  const Block& block = rows_[device][state.done++];
  const GreedyChunk& chunk = problem_.chunks[block.chunk];
  state.free_at = now + length(block);
  if (block.kind == BlockKind::W) wgrads_end_[block.chunk] = state.free_at;
  if (block.kind == BlockKind::D && chunk.gradient.is_taken())
    send(chunk.gradient, block, state.free_at);
  if (block.kind == BlockKind::F) {
    if (!chunk.activation.is_taken()) {
      deliver(block.chunk, BlockKind::D, block.microbatch, state.free_at);
    } else {
      send(chunk.activation, block, state.free_at);
    }
  }
  clock_.set(device, begin(device));
}

void RowTimes::send(const GreedyHop& hop, const Block& producer, Duration ready) {
  if (hop.queued)
    return links_.push({ready, number(hop.chunk), producer.kind, &hop, producer.microbatch});
  deliver(hop.chunk, producer.kind, producer.microbatch,
          hop.local ? ready : links_.transfer(hop, ready));
}

void RowTimes::deliver_queued() {
  const GreedyLinks::Queued message = links_.pop();
  deliver(message.hop->chunk, message.kind, message.microbatch,
          links_.transfer(*message.hop, message.ready));
}

void RowTimes::deliver(ChunkId chunk, BlockKind kind, MicrobatchId microbatch, Duration arrival) {
  const GreedyChunk& given = problem_.chunks[chunk];
  arrivals_[slot(chunk, kind, microbatch)] =
      kind == BlockKind::F ? std::max(arrival, given.release) : arrival;
  clock_.set(index(given.device), begin(index(given.device)));
}

Duration time_of_rows(const GreedyProblem& problem, std::span<const std::vector<Block>> rows) {
  return RowTimes{problem, rows}.run();
}

GreedyProblem without_delays(GreedyProblem problem) {
  for (GreedyChunk& chunk : problem.chunks) {
    for (GreedyHop* hop : {&chunk.activation, &chunk.gradient}) {
      hop->queued = false;
      hop->transfer = hop->latency = Duration::zero();
      hop->resources.clear();
    }
    chunk.release = chunk.reduction = Duration::zero();
  }
  return problem;
}

Duration reductions_end(const GreedyProblem& problem,
                        const IndexedVector<ChunkId, Duration>& wgrads_end) {
  Duration end{};
  for (const auto& mine : problem.chunks_on) {
    std::vector<ChunkId> by_end = mine;
    std::ranges::sort(by_end, {}, [&](ChunkId chunk) { return wgrads_end[chunk]; });
    Duration reduced{};  // a device's reductions take turns
    for (const ChunkId chunk : by_end)
      reduced = std::max(reduced, wgrads_end[chunk]) + problem.chunks[chunk].reduction;
    end = std::max(end, reduced);
  }
  return end;
}

}  // namespace longhaul::schedule::families
