#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.hpp"

namespace longhaul::compress {

/// The numbers that are kept of a vector of `count`: whole blocks, ascending. Only the last block
/// of the vector may be short.
struct SparseSet {
  std::int64_t count = 0;             ///< of the vector
  int block = 1;                      ///< numbers in a block
  std::vector<std::uint32_t> blocks;  ///< ascending, none twice
  std::vector<float> values;          ///< of these blocks, one after the other

  /// Numbers in block `at` of the vector.
  [[nodiscard]] std::size_t size_of(std::uint32_t at) const {
    const std::int64_t begin = static_cast<std::int64_t>(at) * block;
    return static_cast<std::size_t>(count - begin < block ? count - begin : block);
  }
  friend bool operator==(const SparseSet&, const SparseSet&) = default;
};

/// The first place of a number that is NaN or infinite.
class NotFinite : public Error {
public:
  NotFinite(std::size_t index, float value);
  [[nodiscard]] std::size_t index() const { return index_; }

private:
  std::size_t index_;
};

/// Throws NotFinite where there is one.
void require_finite(std::span<const float> numbers, std::size_t first_index = 0);

/// Calls `take`(place in the vector, place in the values, numbers) for each block.
template <typename Take>
void each_block(const SparseSet& set, Take take) {
  std::size_t at = 0;
  for (const std::uint32_t block : set.blocks) {
    const std::size_t size = set.size_of(block);
    take(static_cast<std::size_t>(block) * static_cast<std::size_t>(set.block), at, size);
    at += size;
  }
}

/// Adds `scale` times the set to a dense vector of its count.
void add_to(std::span<float> dense, const SparseSet& set, float scale = 1);

/// All numbers of a vector as one set.
[[nodiscard]] SparseSet whole_set(std::span<const float> dense, int block);

/// The places of the numbers kept, ascending.
[[nodiscard]] std::vector<std::int64_t> places(const SparseSet& set);

/// Sum of sets of one vector, in their order: a number is the sum of the first set that has it and
/// of each later one. Time and memory are linear in what is kept, not in the vector. Throws Error
/// where they are not of one vector and block.
[[nodiscard]] SparseSet merge(std::span<const SparseSet> sets);

}  // namespace longhaul::compress
