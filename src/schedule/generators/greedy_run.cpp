#include "schedule/generators/greedy_run.hpp"

#include "base/error.hpp"

namespace longhaul::families {

GreedyRun::GreedyRun(const GreedyProblem& problem, const GreedyRules& rules,
                     std::vector<std::vector<Block>>* rows)
    : problem_{problem},
      rules_{rules},
      rows_{rows},
      chunks_(problem.chunks.size()),
      devices_(problem.chunks_on.size()),
      reduced_(problem.chunks.size()),
      clock_{problem.chunks_on.size()},
      links_{problem.resources} {
  lay_out_chunks();
  lay_out_devices();
  for (std::size_t d = 0; d < devices_.size(); ++d) clock_.set(d, next_time(devices_[d]));
}

void GreedyRun::lay_out_chunks() {
  std::size_t arrivals = 0;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const GreedyChunk& given = problem_.chunks[c];
    Chunk& chunk = chunks_[c];
    chunk.count = given.count;
    chunk.inputs = arrivals;
    chunk.gradients = arrivals + at(given.count);
    chunk.patience = scaled(given.wgrad.front(), rules_.patience);
    arrivals += 2 * at(given.count);
  }
  arrivals_.resize(arrivals);
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const bool first = c == 0 || problem_.chunks[c - 1].activation.chunk < 0;
    if (!first) continue;
    chunks_[c].forwards_due = chunks_[c].count;
    std::fill_n(arrivals_.begin() + static_cast<std::ptrdiff_t>(chunks_[c].inputs),
                chunks_[c].count, problem_.chunks[c].release);
  }
}

void GreedyRun::lay_out_devices() {
  const auto devices = static_cast<double>(devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Device& device = devices_[d];
    device.first = static_cast<int>(order_.size());
    Bytes kept;
    for (const int c : problem_.chunks_on[d]) {
      const GreedyChunk& given = problem_.chunks[at(c)];
      chunks_[at(c)].place = static_cast<int>(order_.size());
      order_.push_back(c);
      device.forwards_left += given.count;
      if (given.count > 0) kept += given.kept;
      chunks_[at(c)].committed = kept + given.rest;
    }
    device.last = static_cast<int>(order_.size());
    device.cap = problem_.limit;
    if (rules_.cap_first > 0) {
      const double held =
          rules_.cap_first + rules_.cap_slope * (devices - 1 - static_cast<double>(d));
      const Bytes cap{static_cast<std::int64_t>(held * static_cast<double>(kept.count()))};
      device.cap = std::min(problem_.limit, cap);
    }
    for (const int c : chunks_of(device)) {
      const double share = 1 - rules_.sharing * (1 - problem_.chunks[at(c)].front_share);
      chunks_[at(c)].cap =
          Bytes{static_cast<std::int64_t>(share * static_cast<double>(device.cap.count()))};
    }
  }
}

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

Duration GreedyRun::finish() {
  Duration end{};
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    LONGHAUL_ASSERT(chunks_[c].wgrads == chunks_[c].count,
                    "chunk {} stopped at F {}, D {}, W {} of {}", c, chunks_[c].forwards,
                    chunks_[c].dgrads, chunks_[c].wgrads, chunks_[c].count);
  }
  for (const auto& mine : problem_.chunks_on) {
    std::vector<int> by_end = mine;
    std::ranges::sort(by_end, {}, [&](int chunk) { return reduced_[at(chunk)]; });
    Duration reduced{};  // a device's reductions take turns
    for (const int chunk : by_end)
      reduced = std::max(reduced, reduced_[at(chunk)]) + problem_.chunks[at(chunk)].reduction;
    end = std::max(end, reduced);
  }
  return end;
}

Duration GreedyRun::input_of(const Block& block) const {
  const GreedyChunk& given = problem_.chunks[at(block.chunk)];
  const Chunk& chunk = chunks_[at(block.chunk)];
  const std::size_t nth = at((block.microbatch - given.first) / given.stride);
  return arrivals_[(block.kind == BlockKind::F ? chunk.inputs : chunk.gradients) + nth];
}

bool GreedyRun::fits_forward(int chunk, const Device& device) const {
  const Bytes kept = problem_.chunks[at(chunk)].kept;
  const Chunk& state = chunks_[at(chunk)];
  if (device.held + kept > problem_.limit) return false;
  if (state.forwards == state.dgrads) return true;  // its place is kept
  if (state.committed + kept > state.cap) return false;
  return std::ranges::none_of(from(state, device), [&](int other) {
    return chunks_[at(other)].committed + kept > device.cap;
  });
}

bool GreedyRun::fits_dgrad(int chunk, const Device& device) const {
  return !problem_.recompute || device.held + problem_.chunks[at(chunk)].rest <= problem_.limit;
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
  for (const int c : chunks_of(device)) {
    const Chunk& chunk = chunks_[at(c)];
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
    const bool soon = may.next < now + chunks_[at(may.wgrad)].patience;
    return soon ? clock_.set(device, may.next) : run_wgrad(may.wgrad, now);
  }
}

void GreedyRun::run_forward(int chunk, Duration start) {
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  Chunk& state = chunks_[at(chunk)];
  Device& device = devices_[at(given.device)];
  if (state.forwards != state.dgrads) {
    for (const int other : from(state, device)) chunks_[at(other)].committed += given.kept;
  }
  write(BlockKind::F, chunk, state.forwards++);
  device.held += given.kept;
  device.free_at = start + given.forward;
  device.after_forward = true;
  --device.forwards_left;
  if (given.activation.chunk < 0) {
    deliver(chunk, BlockKind::D, device.free_at);
  } else {
    send(given.activation, BlockKind::F, device.free_at);
  }
  clock_.set(at(given.device), next_time(device));
}

void GreedyRun::run_dgrad(int chunk, Duration start) {
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  Chunk& state = chunks_[at(chunk)];
  Device& device = devices_[at(given.device)];
  if (problem_.recompute) write(BlockKind::R, chunk, state.dgrads);
  write(BlockKind::D, chunk, state.dgrads++);
  if (state.forwards != state.dgrads) {
    for (const int other : from(state, device)) chunks_[at(other)].committed -= given.kept;
  }
  device.held += given.rest - given.after_dgrad;
  device.free_at = start + given.recompute + given.dgrad;
  device.after_forward = false;
  if (given.gradient.chunk >= 0) send(given.gradient, BlockKind::D, device.free_at);
  clock_.set(at(given.device), next_time(device));
}

void GreedyRun::run_wgrad(int chunk, Duration start) {
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  Chunk& state = chunks_[at(chunk)];
  Device& device = devices_[at(given.device)];
  write_part(chunk, state.wgrads, state.part);
  device.free_at = start + given.wgrad[at(state.part)];
  if (++state.part == static_cast<int>(given.wgrad.size())) {
    state.part = 0;
    device.held -= given.after_wgrad;
    if (++state.wgrads == given.count) reduced_[at(chunk)] = device.free_at;
  }
  clock_.set(at(given.device), next_time(device));
}

void GreedyRun::write(BlockKind kind, int chunk, int nth) {
  if (rows_ == nullptr) return;
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  (*rows_)[at(given.device)].push_back(
      {.kind = kind, .chunk = chunk, .microbatch = given.first + nth * given.stride});
}

void GreedyRun::write_part(int chunk, int nth, int part) {
  if (rows_ == nullptr) return;
  write(BlockKind::W, chunk, nth);
  if (problem_.chunks[at(chunk)].wgrad.size() == 1) return;
  std::vector<Block>& row = (*rows_)[at(problem_.chunks[at(chunk)].device)];
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
  if (hop.queued) return links_.push({ready, hop.chunk, kind, &hop});
  deliver(hop.chunk, kind, links_.transfer(hop, ready));
}

void GreedyRun::deliver(int chunk, BlockKind kind, Duration arrival) {
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  Chunk& state = chunks_[at(chunk)];
  const Device& device = devices_[at(given.device)];
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
  if (next && begin < clock_.time(at(given.device))) clock_.set(at(given.device), begin);
}

}  // namespace longhaul::families
