#pragma once

#include <bit>
#include <cstdint>

#include "base/error.hpp"
#include "base/random.hpp"

namespace longhaul::training {

/// An endless order of the numbers 0 to `count` - 1: each epoch is a permutation of them, keyed by
/// (seed, epoch), without a table. Eight rounds of a balanced Feistel network over the least power
/// of 4 that holds them all; what falls outside is put through again until it falls inside (cycle
/// walking; Black and Rogaway 2002). Integers alone: the same order on every machine.
class Shuffle {
public:
  /// `count` is at least 1.
  Shuffle(std::int64_t count, std::uint64_t seed)
      : count_{static_cast<std::uint64_t>(count)}, seed_{derived_seed(seed, kStream)} {
    LONGHAUL_ASSERT(count >= 1, "a shuffle of {} samples", count);
    const auto bits = static_cast<unsigned>(std::bit_width(count_ - 1));
    if (bits > 2) half_bits_ = (bits + 1) / 2;
  }

  /// Number `place` of the endless order.
  [[nodiscard]] std::int64_t operator[](std::uint64_t place) const {
    const std::uint64_t key = derived_seed(seed_, place / count_ + 1);
    std::uint64_t number = place % count_;
    do {
      number = permuted(number, key);
    } while (number >= count_);
    return static_cast<std::int64_t>(number);
  }

private:
  static constexpr std::uint64_t kStream = 0x5fff1e;  ///< apart from other draws of the seed
  static constexpr std::uint64_t kRounds = 8;

  [[nodiscard]] std::uint64_t permuted(std::uint64_t number, std::uint64_t key) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = number >> half_bits_, right = number & mask;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      const std::uint64_t mixed = derived_seed(key, round, right) >> 32U;
      const std::uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  std::uint64_t count_, seed_;
  unsigned half_bits_ = 1;  ///< of a half of the network
};

}  // namespace longhaul::training
