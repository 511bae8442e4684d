#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/index.hpp"

namespace longhaul::planner {

/// Blocks waiting to be looked at, lowest (or highest) rank first: one bit a rank. Ranks follow
/// start times, so that a block mostly comes after all that it depends on.
class RankQueue {
public:
  void assign(std::vector<std::int32_t> rank_of_block) {
    rank_ = std::move(rank_of_block);
    block_.resize(rank_.size());
    for (std::size_t block = 0; block < rank_.size(); ++block)
      block_[at(rank_[block])] = static_cast<std::int32_t>(block);
    bits_.assign(rank_.size() / 64 + 1, 0);
    reset();
  }
  [[nodiscard]] std::int32_t rank(std::int32_t block) const { return rank_[at(block)]; }
  void set_rank(std::int32_t block, std::int32_t rank) {
    rank_[at(block)] = rank;
    block_[at(rank)] = block;
  }
  /// Blocks by rank, to be put in another order with set_rank().
  [[nodiscard]] std::int32_t block_at(std::int32_t rank) const { return block_[at(rank)]; }

  void push(std::int32_t block) {
    const auto rank = at(rank_[at(block)]);
    bits_[rank >> 6] |= std::uint64_t{1} << (rank & 63);
    low_ = std::min(low_, rank >> 6);
    high_ = std::max(high_, rank >> 6);
  }
  /// -1: empty.
  [[nodiscard]] std::int32_t pop_lowest() {
    for (; low_ <= high_; ++low_) {
      if (bits_[low_] == 0) continue;
      const auto bit = to_size(std::countr_zero(bits_[low_]));
      bits_[low_] &= bits_[low_] - 1;
      return block_[(low_ << 6) + bit];
    }
    reset();
    return -1;
  }
  [[nodiscard]] std::int32_t pop_highest() {
    for (; low_ <= high_; --high_) {
      if (bits_[high_] != 0) {
        const auto bit = to_size(63 - std::countl_zero(bits_[high_]));
        bits_[high_] &= ~(std::uint64_t{1} << bit);
        return block_[(high_ << 6) + bit];
      }
      if (high_ == 0) break;
    }
    reset();
    return -1;
  }
  void clear() {
    for (std::size_t i = low_; i <= high_ && i < bits_.size(); ++i) bits_[i] = 0;
    reset();
  }

private:
  void reset() {
    low_ = bits_.size();
    high_ = 0;
  }
  std::vector<std::int32_t> rank_, block_;
  std::vector<std::uint64_t> bits_;
  std::size_t low_ = 0, high_ = 0;  ///< words that may hold bits; empty: low_ > high_ or no bits
};

}  // namespace longhaul::planner
