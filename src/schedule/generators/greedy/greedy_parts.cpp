#include <algorithm>
#include <numeric>

#include "base/index.hpp"
#include "schedule/generators/greedy/greedy_run.hpp"

namespace longhaul::schedule::families {
namespace {

bool same_block(const Block& a, const Block& b) {
  return a.kind == b.kind && a.chunk == b.chunk && a.microbatch == b.microbatch;
}

/// A row with the times at which its blocks begin. W stand as runs of parts, as GreedyRun writes
/// them.
class Parts {
public:
  Parts(const GreedyProblem& problem, const GreedyRun& run, std::vector<Block>& row)
      : problem_{problem}, run_{run}, row_{row}, starts_(row.size() + 1) {
    Duration free_at{};
    for (std::size_t i = 0; i < row.size(); ++i) {
      starts_[i] = start(row[i], free_at);
      free_at = starts_[i] + length(row[i]);
    }
    starts_.back() = free_at;
  }

  void merge() {
    for (std::size_t i = 0; i < row_.size(); ++i) {
      if (row_[i].kind != BlockKind::W || row_[i].parts == 0) continue;
      for (std::size_t next = rest_of(i); next < row_.size(); next = rest_of(i)) {
        if (move_back(i, next) || !move_forward(i, next)) break;
      }
    }
    std::erase_if(row_, [](const Block& block) { return block.parts == 0; });
  }

private:
  /// A W's other parts follow soon: between them stand F and D that came when it was left.
  static constexpr std::size_t kFurthest = 16;
  /// Longer ripples than this count as a loss.
  static constexpr std::size_t kLongest = 256;

  [[nodiscard]] Duration length(const Block& block) const {
    const GreedyChunk& chunk = problem_.chunks[block.chunk];
    switch (block.kind) {
      case BlockKind::F: return chunk.forward;
      case BlockKind::R: return chunk.recompute;
      case BlockKind::D: return chunk.dgrad;
      case BlockKind::B:
      case BlockKind::W: break;
    }
    const auto first = chunk.wgrad.begin() + block.part;
    return std::accumulate(first, first + block.parts, Duration::zero());
  }

  [[nodiscard]] Duration start(const Block& block, Duration free_at) const {
    return block.kind == BlockKind::W ? free_at : std::max(free_at, run_.input_of(block));
  }

  /// Position of the parts after those at `i`; row_.size(): there are none, or they are far away.
  [[nodiscard]] std::size_t rest_of(std::size_t i) const {
    if (row_[i].part + row_[i].parts == static_cast<int>(whole(i))) return row_.size();
    const std::size_t end = std::min(row_.size(), i + kFurthest);
    for (std::size_t k = i + 1; k < end; ++k) {
      if (row_[k].parts > 0 && same_block(row_[k], row_[i])) return k;
    }
    return row_.size();
  }
  [[nodiscard]] std::size_t whole(std::size_t i) const {
    return problem_.chunks[row_[i].chunk].wgrad.size();
  }

  /// Joins the parts at `i` to those at `next`; at `i` an empty run remains.
  bool move_back(std::size_t i, std::size_t next) {
    const Block here = row_[i];
    const Block there = row_[next];
    row_[next].part = here.part;
    row_[next].parts = static_cast<std::uint8_t>(here.parts + there.parts);
    row_[i].parts = 0;
    if (retime(i)) return true;
    row_[i] = here;
    row_[next] = there;
    return false;
  }

  bool move_forward(std::size_t i, std::size_t next) {
    const Block here = row_[i];
    const Block there = row_[next];
    row_[i].parts = static_cast<std::uint8_t>(here.parts + there.parts);
    row_[next].parts = 0;
    if (retime(i)) return true;
    row_[i] = here;
    row_[next] = there;
    return false;
  }

  /// Follows a change at `i` until all begins as before. False, with the old times, if an F, R or
  /// D, or the end of the row, comes later.
  bool retime(std::size_t i) {
    before_.clear();
    Duration free_at = starts_[i];
    for (std::size_t k = i; k < row_.size(); ++k) {
      const Duration begins = row_[k].parts == 0 ? free_at : start(row_[k], free_at);
      const bool settled = begins == starts_[k] && k > i + kFurthest;
      if (settled) return true;
      const bool later = row_[k].kind != BlockKind::W && begins > starts_[k];
      if (later || k > i + kLongest) return restore(i);
      before_.push_back(starts_[k]);
      starts_[k] = begins;
      free_at = begins + (row_[k].parts == 0 ? Duration::zero() : length(row_[k]));
    }
    if (free_at > starts_.back()) return restore(i);
    starts_.back() = free_at;
    return true;
  }
  bool restore(std::size_t i) {
    std::ranges::copy(before_, starts_.begin() + static_cast<std::ptrdiff_t>(i));
    return false;
  }

  const GreedyProblem& problem_;
  const GreedyRun& run_;
  std::vector<Block>& row_;
  std::vector<Duration> starts_;  ///< index: position; the end of the row after the last
  std::vector<Duration> before_;  ///< starts that retime() changed
};

/// Do parts of `common` of the given ones take as long as these together? The remainder of a
/// division lies on the first part, so that larger parts may end some nanoseconds off.
bool is_even(const std::vector<Duration>& parts, int common) {
  const Duration whole = std::accumulate(parts.begin(), parts.end(), Duration::zero());
  return whole * common / static_cast<std::int64_t>(parts.size()) == common * parts.back();
}

/// The largest part of which every run of the W at `first` is a multiple.
int common_part(const std::vector<Block>& row, std::size_t first,
                const std::vector<Duration>& parts) {
  const auto whole = static_cast<int>(parts.size());
  int common = whole;
  for (std::size_t k = first, seen = 0; static_cast<int>(seen) < whole; ++k) {
    if (!same_block(row[k], row[first])) continue;
    common = std::gcd(common, int{row[k].parts});
    seen += row[k].parts;
  }
  return common == whole || is_even(parts, common) ? common : 1;
}

/// Runs of parts as blocks of equal parts.
std::vector<Block> as_parts(const GreedyProblem& problem, const std::vector<Block>& row) {
  std::vector<Block> blocks;
  blocks.reserve(row.size());
  IndexedVector<ChunkId, int> common(problem.chunks.count());  // of the W that a chunk is at
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Block& run = row[i];
    if (run.kind != BlockKind::W) {
      blocks.push_back(run);
      continue;
    }
    const std::vector<Duration>& parts = problem.chunks[run.chunk].wgrad;
    const auto whole = static_cast<int>(parts.size());
    int& part = common[run.chunk];
    if (run.part == 0) part = common_part(row, i, parts);
    for (int k = run.part / part; k < (run.part + run.parts) / part; ++k) {
      Block block = run;
      block.part = static_cast<std::uint8_t>(k);
      block.parts = static_cast<std::uint8_t>(whole / part);
      blocks.push_back(block);
    }
  }
  return blocks;
}

}  // namespace

void merge_parts(const GreedyProblem& problem, const GreedyRun& run, std::vector<Block>& row) {
  Parts{problem, run, row}.merge();
  row = as_parts(problem, row);
}

}  // namespace longhaul::schedule::families
