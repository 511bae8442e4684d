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
  std::size_t arrivals = 0;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const GreedyChunk& given = problem.chunks[c];
    chunks_[c].inputs = arrivals;
    chunks_[c].gradients = arrivals + at(given.count);
    arrivals += 2 * at(given.count);
    devices_[at(given.device)].forwards_left += given.count;
  }
  arrivals_.resize(arrivals);
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const GreedyChunk& given = problem.chunks[c];
    const bool first = c == 0 || problem.chunks[c - 1].activation.chunk < 0;
    if (!first) continue;
    chunks_[c].forwards_due = given.count;
    std::fill_n(arrivals_.begin() + static_cast<std::ptrdiff_t>(chunks_[c].inputs), given.count,
                given.release);
  }
  const auto last = static_cast<double>(devices_.size() - 1);
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Bytes kept;
    for (const int c : problem.chunks_on[d]) {
      if (problem.chunks[at(c)].count == 0) continue;
      kept += problem.chunks[at(c)].kept;
      chunks_[at(c)].committed = kept + problem.chunks[at(c)].rest;
    }
    devices_[d].cap = problem.limit;
    if (rules.cap_first > 0) {
      const double held = rules.cap_first + rules.cap_slope * (last - static_cast<double>(d));
      const Bytes cap{static_cast<std::int64_t>(held * static_cast<double>(kept.count()))};
      devices_[d].cap = std::min(problem.limit, cap);
    }
    clock_.set(d, next_time(d));
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
    LONGHAUL_ASSERT(chunks_[c].wgrads == problem_.chunks[c].count,
                    "chunk {} stopped at F {}, D {}, W {} of {}", c, chunks_[c].forwards,
                    chunks_[c].dgrads, chunks_[c].wgrads, problem_.chunks[c].count);
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

std::span<const int> GreedyRun::from(int chunk) const {
  const std::vector<int>& mine = problem_.chunks_on[at(problem_.chunks[at(chunk)].device)];
  return {std::ranges::find(mine, chunk), mine.end()};
}

bool GreedyRun::fits_forward(int chunk) const {
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  const Device& device = devices_[at(given.device)];
  if (device.held + given.kept > problem_.limit) return false;
  if (chunks_[at(chunk)].forwards == chunks_[at(chunk)].dgrads) return true;  // its place is kept
  return std::ranges::none_of(from(chunk), [&](int other) {
    return chunks_[at(other)].committed + given.kept > device.cap;
  });
}

bool GreedyRun::fits_dgrad(int chunk) const {
  if (!problem_.recompute) return true;
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  return devices_[at(given.device)].held + given.rest <= problem_.limit;
}

Duration GreedyRun::forward_input(int chunk) const {
  const Chunk& state = chunks_[at(chunk)];
  if (state.forwards == state.forwards_due) return kNever;
  return arrivals_[state.inputs + at(state.forwards)];
}

Duration GreedyRun::dgrad_input(int chunk) const {
  const Chunk& state = chunks_[at(chunk)];
  if (state.dgrads == state.dgrads_due) return kNever;
  return arrivals_[state.gradients + at(state.dgrads)];
}

GreedyRun::Candidates GreedyRun::candidates(std::size_t device, Duration now) const {
  Candidates may;
  for (const int chunk : problem_.chunks_on[device]) {
    const Chunk& state = chunks_[at(chunk)];
    if (state.wgrads < state.dgrads && (rules_.deep_wgrad || may.wgrad < 0)) may.wgrad = chunk;
    const Duration gradient = dgrad_input(chunk);
    if (gradient != kNever && fits_dgrad(chunk)) {
      if (gradient > now) {
        may.next = std::min(may.next, gradient);
      } else if (may.dgrad < 0 || rules_.deep_dgrad) {
        may.dgrad = chunk;  // chunk 0 ends the microbatch
      }
    }
    if (state.forwards == problem_.chunks[at(chunk)].count || !fits_forward(chunk)) continue;
    may.room = true;
    const Duration input = forward_input(chunk);
    if (input == kNever) continue;
    if (input > now) {
      may.next = std::min(may.next, input);
    } else if (may.forward < 0 || rules_.deep_forward) {
      may.forward = chunk;
    }
  }
  return may;
}

Duration GreedyRun::next_time(std::size_t device) const {
  const Duration free_at = devices_[device].free_at;
  const Candidates may = candidates(device, free_at);
  if (may.forward >= 0 || may.dgrad >= 0 || may.wgrad >= 0) return free_at;
  return may.next;
}

const GreedyRules::Order& GreedyRun::order(const Device& device, const Candidates& may) const {
  if (device.forwards_left == 0) return rules_.tear_down;
  if (device.after_forward) return rules_.after_forward;
  return may.room ? rules_.after_backward : rules_.memory_full;
}

void GreedyRun::act(std::size_t device, Duration now) {
  const Candidates may = candidates(device, now);
  for (const BlockKind kind : order(devices_[device], may)) {
    if (kind == BlockKind::F && may.forward >= 0) return run_forward(may.forward, now);
    if (kind == BlockKind::D && may.dgrad >= 0) return run_dgrad(may.dgrad, now);
    if (kind != BlockKind::W || may.wgrad < 0) continue;
    const Chunk& state = chunks_[at(may.wgrad)];
    const Duration length = problem_.chunks[at(may.wgrad)].wgrad[at(state.part)];
    if (may.next < now + scaled(length, rules_.patience)) return clock_.set(device, may.next);
    return run_wgrad(may.wgrad, now);
  }
}

void GreedyRun::commit(int chunk, Bytes change) {
  for (const int other : from(chunk)) chunks_[at(other)].committed += change;
}

void GreedyRun::run_forward(int chunk, Duration start) {
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  Chunk& state = chunks_[at(chunk)];
  Device& device = devices_[at(given.device)];
  if (state.forwards != state.dgrads) commit(chunk, given.kept);
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
  clock_.set(at(given.device), next_time(at(given.device)));
}

void GreedyRun::run_dgrad(int chunk, Duration start) {
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  Chunk& state = chunks_[at(chunk)];
  Device& device = devices_[at(given.device)];
  if (problem_.recompute) write(BlockKind::R, chunk, state.dgrads);
  write(BlockKind::D, chunk, state.dgrads++);
  if (state.forwards != state.dgrads) commit(chunk, -given.kept);
  device.held += given.rest - given.after_dgrad;
  device.free_at = start + given.recompute + given.dgrad;
  device.after_forward = false;
  if (given.gradient.chunk >= 0) send(given.gradient, BlockKind::D, device.free_at);
  clock_.set(at(given.device), next_time(at(given.device)));
}

void GreedyRun::run_wgrad(int chunk, Duration start) {
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  Chunk& state = chunks_[at(chunk)];
  Device& device = devices_[at(given.device)];
  const auto parts = static_cast<int>(given.wgrad.size());
  write(BlockKind::W, chunk, state.wgrads, state.part, parts);
  device.free_at = start + given.wgrad[at(state.part)];
  if (++state.part == parts) {
    state.part = 0;
    device.held -= given.after_wgrad;
    if (++state.wgrads == given.count) reduced_[at(chunk)] = device.free_at;
  }
  clock_.set(at(given.device), next_time(at(given.device)));
}

void GreedyRun::write(BlockKind kind, int chunk, int nth, int part, int parts) {
  if (rows_ == nullptr) return;
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  (*rows_)[at(given.device)].push_back({kind, static_cast<std::uint8_t>(part),
                                        static_cast<std::uint8_t>(parts), chunk,
                                        given.first + nth * given.stride});
}

void GreedyRun::send(const GreedyHop& hop, BlockKind kind, Duration ready) {
  if (hop.local) return deliver(hop.chunk, kind, ready);
  if (hop.queued) return links_.push({ready, hop.chunk, kind, &hop});
  deliver(hop.chunk, kind, links_.transfer(hop, ready));
}

void GreedyRun::deliver(int chunk, BlockKind kind, Duration arrival) {
  const GreedyChunk& given = problem_.chunks[at(chunk)];
  Chunk& state = chunks_[at(chunk)];
  const bool forward = kind == BlockKind::F;
  int& due = forward ? state.forwards_due : state.dgrads_due;
  arrivals_[(forward ? state.inputs : state.gradients) + at(due++)] =
      forward ? std::max(arrival, given.release) : arrival;
  const std::size_t device = at(given.device);
  clock_.set(device, std::min(clock_.time(device), next_time(device)));
}

Duration run_greedy(const GreedyProblem& problem, const GreedyRules& rules,
                    std::vector<std::vector<Block>>* rows) {
  return GreedyRun{problem, rules, rows}.run();
}

}  // namespace longhaul::families
