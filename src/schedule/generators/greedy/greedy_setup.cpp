// The begin and the end of a run of the greedy; the steps between are in greedy_run.cpp.
#include <algorithm>

#include "base/error.hpp"
#include "schedule/generators/greedy/greedy_run.hpp"
#include "schedule/generators/greedy/row_times.hpp"

namespace longhaul::schedule::families {

GreedyRun::GreedyRun(const GreedyProblem& problem, const GreedyRules& rules,
                     std::vector<std::vector<Block>>* rows)
    : problem_{problem},
      rules_{rules},
      rows_{rows},
      chunks_(problem.chunks.count()),
      devices_(problem.chunks_on.size()),
      reduced_(problem.chunks.count()),
      clock_{problem.chunks_on.size()},
      links_{problem.resources} {
  lay_out_chunks();
  lay_out_devices();
  for (std::size_t d = 0; d < devices_.size(); ++d) clock_.set(d, next_time(devices_[d]));
}

void GreedyRun::lay_out_chunks() {
  std::size_t arrivals = 0;
  for (const ChunkId c : chunks_.ids()) {
    const GreedyChunk& given = problem_.chunks[c];
    Chunk& chunk = chunks_[c];
    chunk.count = given.count;
    chunk.inputs = arrivals;
    chunk.gradients = arrivals + at(given.count);
    chunk.patience = scaled(given.wgrad.front(), rules_.patience);
    arrivals += 2 * at(given.count);
  }
  arrivals_.resize(arrivals);
  for (const ChunkId c : chunks_.ids()) {
    const bool first = c == 0 || !problem_.chunks[previous(c)].activation.is_taken();
    if (!first) continue;
    chunks_[c].forwards_due = chunks_[c].count;
    std::fill_n(arrivals_.begin() + static_cast<std::ptrdiff_t>(chunks_[c].inputs),
                chunks_[c].count, problem_.chunks[c].release);
  }
}

void GreedyRun::lay_out_devices() {
  const auto devices = static_cast<double>(devices_.size());
  for (const DeviceId d : problem_.chunks_on.ids()) {
    Device& device = devices_[index(d)];
    device.first = static_cast<int>(order_.size());
    Bytes kept;
    for (const ChunkId c : problem_.chunks_on[d]) {
      const GreedyChunk& given = problem_.chunks[c];
      chunks_[c].place = static_cast<int>(order_.size());
      order_.push_back(c);
      device.forwards_left += given.count;
      if (given.count > 0) kept += given.kept;
      chunks_[c].committed = kept + given.rest;
    }
    device.last = static_cast<int>(order_.size());
    device.cap = problem_.limit;
    if (rules_.cap_first > 0) {
      const double held =
          rules_.cap_first + rules_.cap_slope * (devices - 1 - static_cast<double>(number(d)));
      const Bytes cap{static_cast<std::int64_t>(held * static_cast<double>(kept.count()))};
      device.cap = std::min(problem_.limit, cap);
    }
    for (const ChunkId c : chunks_of(device)) {
      const double share = 1 - rules_.sharing * (1 - problem_.chunks[c].front_share);
      chunks_[c].cap =
          Bytes{static_cast<std::int64_t>(share * static_cast<double>(device.cap.count()))};
    }
  }
}

Duration GreedyRun::finish() {
  for (const ChunkId c : chunks_.ids()) {
    LONGHAUL_ASSERT(chunks_[c].wgrads == chunks_[c].count,
                    "chunk {} stopped at F {}, D {}, W {} of {}", c, chunks_[c].forwards,
                    chunks_[c].dgrads, chunks_[c].wgrads, chunks_[c].count);
  }
  return reductions_end(problem_, reduced_);
}

Duration GreedyRun::input_of(const Block& block) const {
  const GreedyChunk& given = problem_.chunks[block.chunk];
  const Chunk& chunk = chunks_[block.chunk];
  const std::size_t nth = at((block.microbatch - given.first) / given.stride);
  return arrivals_[(block.kind == BlockKind::F ? chunk.inputs : chunk.gradients) + nth];
}

}  // namespace longhaul::schedule::families
