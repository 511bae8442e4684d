#include "schedule/generators/greedy/greedy_run.hpp"

#include <algorithm>

namespace longhaul::schedule::families {

Duration GreedyRun::run() {
  for (;;) {
    const std::size_t device = clock_.earliest();
    const Duration now = clock_.time(device);
    if (links_.any_ready(now)) {
      const GreedyLinks::Queued message = links_.pop();
      deliver(message.hop->chunk, message.kind, links_.transfer(*message.hop, message.ready));
      continue;
    }
    if (now == kNever) return finish();
    act(device, now);
  }
}

bool GreedyRun::fits_forward(ChunkId chunk, const Device& device) const {
  const Bytes kept = problem_.chunks[chunk].kept;
  const Chunk& state = chunks_[chunk];
  if (device.held + kept > problem_.limit) return false;
  if (state.forwards == state.dgrads) return true;  // its place is kept
  if (state.committed + kept > state.cap) return false;
  return std::ranges::none_of(from(state, device), [&](ChunkId other) {
    return chunks_[other].committed + kept > device.cap;
  });
}

bool GreedyRun::fits_dgrad(ChunkId chunk, const Device& device) const {
  return !problem_.recompute || device.held + problem_.chunks[chunk].rest <= problem_.limit;
}

Duration GreedyRun::forward_input(const Chunk& chunk) const {
  if (chunk.forwards == chunk.forwards_due) return kNever;
  return arrivals_[chunk.inputs + at(chunk.forwards)];
}

Duration GreedyRun::dgrad_input(const Chunk& chunk) const {
  if (chunk.dgrads == chunk.dgrads_due) return kNever;
  return arrivals_[chunk.gradients + at(chunk.dgrads)];
}

GreedyRun::Candidates GreedyRun::candidates(const Device& device, Duration now) const {
  Candidates may;
  for (const ChunkId c : chunks_of(device)) {
    const Chunk& chunk = chunks_[c];
    if (chunk.wgrads < chunk.dgrads && (rules_.deep_wgrad || may.wgrad < 0)) may.wgrad = c;
    const Duration gradient = dgrad_input(chunk);
    if (gradient != kNever && fits_dgrad(c, device)) {
      if (gradient > now) {
        may.next = std::min(may.next, gradient);
      } else if (may.dgrad < 0 || rules_.deep_dgrad) {
        may.dgrad = c;
      }
    }
    if (chunk.forwards == chunk.count || !fits_forward(c, device)) continue;
    may.room = true;
    const Duration input = forward_input(chunk);
    if (input == kNever) continue;
    if (input > now) {
      may.next = std::min(may.next, input);
    } else if (may.forward < 0 || rules_.deep_forward) {
      may.forward = c;
    }
  }
  return may;
}

Duration GreedyRun::next_time(const Device& device) const {
  const Candidates may = candidates(device, device.free_at);
  if (may.forward >= 0 || may.dgrad >= 0 || may.wgrad >= 0) return device.free_at;
  return may.next;
}

const GreedyRules::Order& GreedyRun::order(const Device& device, const Candidates& may) const {
  if (device.forwards_left == 0) return rules_.tear_down;
  if (device.after_forward) return rules_.after_forward;
  return may.room ? rules_.after_backward : rules_.memory_full;
}

void GreedyRun::act(std::size_t device, Duration now) {
  const Candidates may = candidates(devices_[device], now);
  for (const BlockKind kind : order(devices_[device], may)) {
    if (kind == BlockKind::F && may.forward >= 0) return run_forward(may.forward, now);
    if (kind == BlockKind::D && may.dgrad >= 0) return run_dgrad(may.dgrad, now);
    if (kind != BlockKind::W || may.wgrad < 0) continue;
    const bool soon = may.next < now + chunks_[may.wgrad].patience;
    return soon ? clock_.set(device, may.next) : run_wgrad(may.wgrad, now);
  }
}

void GreedyRun::run_forward(ChunkId chunk, Duration start) {
  const GreedyChunk& given = problem_.chunks[chunk];
  Chunk& state = chunks_[chunk];
  Device& device = devices_[index(given.device)];
  if (state.forwards != state.dgrads) {
    for (const ChunkId other : from(state, device)) chunks_[other].committed += given.kept;
  }
  write(BlockKind::F, chunk, state.forwards++);
  device.held += given.kept;
  device.free_at = start + given.forward;
  device.after_forward = true;
  --device.forwards_left;
  if (!given.activation.is_taken()) {
    deliver(chunk, BlockKind::D, device.free_at);
  } else {
    send(given.activation, BlockKind::F, device.free_at);
  }
  clock_.set(index(given.device), next_time(device));
}

void GreedyRun::run_dgrad(ChunkId chunk, Duration start) {
  const GreedyChunk& given = problem_.chunks[chunk];
  Chunk& state = chunks_[chunk];
  Device& device = devices_[index(given.device)];
  if (problem_.recompute) write(BlockKind::R, chunk, state.dgrads);
  write(BlockKind::D, chunk, state.dgrads++);
  if (state.forwards != state.dgrads) {
    for (const ChunkId other : from(state, device)) chunks_[other].committed -= given.kept;
  }
  device.held += given.rest - given.after_dgrad;
  device.free_at = start + given.recompute + given.dgrad;
  device.after_forward = false;
  if (given.gradient.is_taken()) send(given.gradient, BlockKind::D, device.free_at);
  clock_.set(index(given.device), next_time(device));
}

void GreedyRun::run_wgrad(ChunkId chunk, Duration start) {
  const GreedyChunk& given = problem_.chunks[chunk];
  Chunk& state = chunks_[chunk];
  Device& device = devices_[index(given.device)];
  write_part(chunk, state.wgrads, state.part);
  device.free_at = start + given.wgrad[at(state.part)];
  if (++state.part == static_cast<int>(given.wgrad.size())) {
    state.part = 0;
    device.held -= given.after_wgrad;
    if (++state.wgrads == given.count) reduced_[chunk] = device.free_at;
  }
  clock_.set(index(given.device), next_time(device));
}

void GreedyRun::write(BlockKind kind, ChunkId chunk, int nth) {
  if (rows_ == nullptr) return;
  const GreedyChunk& given = problem_.chunks[chunk];
  (*rows_)[index(given.device)].push_back(
      {.kind = kind, .chunk = chunk, .microbatch = MicrobatchId{given.first + nth * given.stride}});
}

void GreedyRun::write_part(ChunkId chunk, int nth, int part) {
  if (rows_ == nullptr) return;
  write(BlockKind::W, chunk, nth);
  if (problem_.chunks[chunk].wgrad.size() == 1) return;
  std::vector<Block>& row = (*rows_)[index(problem_.chunks[chunk].device)];
  row.back().part = static_cast<std::uint8_t>(part);
  if (part == 0) return;
  Block& before = row[row.size() - 2];
  const bool same = before.kind == BlockKind::W && before.chunk == chunk &&
                    before.microbatch == row.back().microbatch;
  if (!same) return;
  ++before.parts;
  row.pop_back();
}

void GreedyRun::send(const GreedyHop& hop, BlockKind kind, Duration ready) {
  if (hop.local) return deliver(hop.chunk, kind, ready);
  if (hop.queued) return links_.push({ready, number(hop.chunk), kind, &hop});
  deliver(hop.chunk, kind, links_.transfer(hop, ready));
}

void GreedyRun::deliver(ChunkId chunk, BlockKind kind, Duration arrival) {
  const GreedyChunk& given = problem_.chunks[chunk];
  Chunk& state = chunks_[chunk];
  const Device& device = devices_[index(given.device)];
  bool next = false;  // is it the one that its device waits for?
  if (kind == BlockKind::F) {
    arrival = std::max(arrival, given.release);
    next = state.forwards == state.forwards_due && fits_forward(chunk, device);
    arrivals_[state.inputs + at(state.forwards_due++)] = arrival;
  } else {
    next = state.dgrads == state.dgrads_due && fits_dgrad(chunk, device);
    arrivals_[state.gradients + at(state.dgrads_due++)] = arrival;
  }
  const Duration begin = std::max(device.free_at, arrival);
  if (next && begin < clock_.time(index(given.device))) clock_.set(index(given.device), begin);
}

}  // namespace longhaul::schedule::families
