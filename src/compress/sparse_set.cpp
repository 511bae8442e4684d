#include "compress/sparse_set.hpp"

#include <cmath>
#include <numeric>

namespace longhaul::compress {

NotFinite::NotFinite(std::size_t index, float value)
    : Error{fmt::format("number {} is {} (no finite number). Look at where it was computed.", index,
                        value)},
      index_{index} {}

void require_finite(std::span<const float> numbers, std::size_t first_index) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i])) throw NotFinite{first_index + i, numbers[i]};
}

void add_to(std::span<float> dense, const SparseSet& set, float scale) {
  LONGHAUL_ASSERT(static_cast<std::int64_t>(dense.size()) == set.count, "{} of {}", dense.size(),
                  set.count);
  each_block(set, [&](std::size_t place, std::size_t at, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) dense[place + i] += scale * set.values[at + i];
  });
}

SparseSet whole_set(std::span<const float> dense, int block) {
  const auto count = static_cast<std::int64_t>(dense.size());
  SparseSet set{count, block, {}, {dense.begin(), dense.end()}};
  set.blocks.resize(static_cast<std::size_t>((count + block - 1) / block));
  std::iota(set.blocks.begin(), set.blocks.end(), 0U);
  return set;
}

std::vector<std::int64_t> places(const SparseSet& set) {
  std::vector<std::int64_t> all;
  all.reserve(set.values.size());
  each_block(set, [&](std::size_t place, std::size_t, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) all.push_back(static_cast<std::int64_t>(place + i));
  });
  return all;
}

}  // namespace longhaul::compress
