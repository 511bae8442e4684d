#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "compress/sparse_set.hpp"

namespace longhaul::compress {
namespace {

/// Blocks that are merged at once: their bits and the places of their sums stay in the first cache.
constexpr std::uint32_t kWindow = 4096;
constexpr std::size_t kWords = kWindow / 64;

struct MergeHead {
  const SparseSet* set = nullptr;
  std::size_t next = 0;   ///< block of the set
  std::size_t value = 0;  ///< its values
};

void require_one_vector(std::span<const SparseSet> sets) {
  for (const SparseSet& set : sets)
    if (set.count != sets.front().count || set.block != sets.front().block)
      fail(
          "sets of {} numbers in blocks of {} and of {} in {} have no sum (they are of different "
          "vectors). Merge sets of one.",
          sets.front().count, sets.front().block, set.count, set.block);
}

/// One window after the other, and none that no set has a block in.
class Merger {
public:
  explicit Merger(std::span<const SparseSet> sets) {
    sum_.count = sets.front().count;
    sum_.block = sets.front().block;
    std::size_t most_blocks = 0, most_values = 0;
    for (const SparseSet& set : sets) {
      heads_.push_back({&set, 0, 0});
      most_blocks = std::max(most_blocks, set.blocks.size());
      most_values = std::max(most_values, set.values.size());
    }
    sum_.blocks.reserve(most_blocks);
    sum_.values.reserve(most_values);
  }

  SparseSet run() && {
    for (std::uint64_t next = next_block(); next != kNone; next = next_block()) {
      const std::uint64_t first = next / kWindow * kWindow;
      mark(first);
      place_sums(first);
      for (MergeHead& head : heads_) add(head, first);
      bits_.fill(0);
    }
    return std::move(sum_);
  }

private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] std::uint64_t next_block() const {
    std::uint64_t next = kNone;
    for (const MergeHead& head : heads_)
      if (head.next < head.set->blocks.size())
        next = std::min<std::uint64_t>(next, head.set->blocks[head.next]);
    return next;
  }

  void mark(std::uint64_t first) {
    for (const MergeHead& head : heads_) {
      const std::vector<std::uint32_t>& blocks = head.set->blocks;
      for (std::size_t i = head.next; i < blocks.size() && blocks[i] < first + kWindow; ++i) {
        const std::uint64_t at = blocks[i] - first;
        bits_[at / 64] |= std::uint64_t{1} << (at % 64);
      }
    }
  }

  /// Appends the marked blocks, with values of zero, and notes how many stand before each word.
  void place_sums(std::uint64_t first) {
    begin_ = sum_.values.size();
    std::size_t marked = 0;
    for (std::size_t word = 0; word < kWords; ++word) {
      before_[word] = static_cast<std::uint32_t>(marked);
      for (std::uint64_t left = bits_[word]; left != 0; left &= left - 1, ++marked)
        sum_.blocks.push_back(static_cast<std::uint32_t>(first + word * 64) +
                              static_cast<std::uint32_t>(std::countr_zero(left)));
    }
    const auto block = static_cast<std::size_t>(sum_.block);
    sum_.values.resize(begin_ + (marked - 1) * block + sum_.size_of(sum_.blocks.back()));
    seen_.fill(0);
  }

  void add(MergeHead& head, std::uint64_t first) {
    const std::vector<std::uint32_t>& blocks = head.set->blocks;
    const auto block = static_cast<std::size_t>(sum_.block);
    for (; head.next < blocks.size() && blocks[head.next] < first + kWindow; ++head.next) {
      const std::uint64_t at = blocks[head.next] - first;
      const std::uint64_t bit = std::uint64_t{1} << (at % 64);
      const std::size_t rank =
          before_[at / 64] + static_cast<std::size_t>(std::popcount(bits_[at / 64] & (bit - 1)));
      float* const to = sum_.values.data() + begin_ + rank * block;
      const float* const from = head.set->values.data() + head.value;
      const std::size_t size = sum_.size_of(blocks[head.next]);
      if ((seen_[at / 64] & bit) != 0)
        for (std::size_t i = 0; i < size; ++i) to[i] += from[i];
      else
        std::copy_n(from, size, to);
      seen_[at / 64] |= bit;
      head.value += size;
    }
  }

  SparseSet sum_;
  std::vector<MergeHead> heads_;
  std::array<std::uint64_t, kWords> bits_{}, seen_{};
  std::array<std::uint32_t, kWords> before_{};
  std::size_t begin_ = 0;  ///< of the window's sums
};

}  // namespace

SparseSet merge(std::span<const SparseSet> sets) {
  if (sets.empty()) return {};
  require_one_vector(sets);
  return Merger{sets}.run();
}

}  // namespace longhaul::compress
