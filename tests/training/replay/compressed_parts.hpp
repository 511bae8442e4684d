#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/random.hpp"
#include "compress/settings.hpp"
#include "compress/sparse_set.hpp"
#include "training/replay/replay_set.hpp"

// What the replay's plain code is held against: compress/, which ranks use. Replay itself does not.
namespace longhaul::testing {

/// Numbers of all magnitudes, some of them equal and some 0, as gradients have.
inline std::vector<float> numbers_like_gradients(std::size_t count, std::uint64_t seed) {
  Random random{seed};
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    const std::int64_t kind = random.between(0, 9);
    const double x = random.normal();
    if (kind == 0) continue;
    number = kind == 1 ? 0.25F : static_cast<float>(x * x * x / 8);
  }
  return numbers;
}

/// Those of `compress`, which takes the block as it is.
inline compress::Settings settings_of(const GradientCompression& compress, double share,
                                      std::uint64_t seed) {
  compress::Settings settings;
  settings.method = *from_string<compress::Method>(to_string(compress.method));
  settings.keep = share;
  settings.block = compress.method == CompressMethod::topk ? 1 : compress.block;
  settings.values = *from_string<compress::ValueFormat>(to_string(compress.values));
  settings.seed = seed;
  return settings;
}

/// A set of ranks as the replay has it.
inline training::ReplaySet spread_out(const compress::SparseSet& set) {
  training::ReplaySet all{static_cast<std::size_t>(set.count)};
  compress::each_block(set, [&](std::size_t place, std::size_t at, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      all.numbers[place + i] = set.values[at + i];
      all.has[place + i] = 1;
    }
  });
  return all;
}

/// A set of whole blocks, `share` of them, drawn.
inline compress::SparseSet drawn_set(std::size_t count, int block, double share,
                                     std::uint64_t seed) {
  Random random{seed};
  const std::vector<float> numbers = numbers_like_gradients(count, seed + 1);
  compress::SparseSet set{static_cast<std::int64_t>(count), block, {}, {}};
  const auto width = static_cast<std::size_t>(block);
  for (std::size_t begin = 0; begin < count; begin += width) {
    if (random.uniform() >= share) continue;
    set.blocks.push_back(static_cast<std::uint32_t>(begin / width));
    for (std::size_t i = begin; i < std::min(count, begin + width); ++i)
      set.values.push_back(numbers[i]);
  }
  return set;
}

/// Every sparse method with every block and format of values.
inline std::vector<GradientCompression> every_sparse_choice() {
  std::vector<GradientCompression> all;
  for (const CompressMethod method : every<CompressMethod>())
    for (const int block : {1, 2, 4, 8, 16})
      for (const SetValues values : every<SetValues>()) {
        if (!is_sparse(method) || (method == CompressMethod::topk && block != 1)) continue;
        GradientCompression compress;
        compress.method = method;
        compress.block = block;
        compress.values = values;
        all.push_back(compress);
      }
  return all;
}

inline std::string name_of(const GradientCompression& compress) {
  return fmt::format("{}, blocks of {}, {}", to_string(compress.method), compress.block,
                     to_string(compress.values));
}

}  // namespace longhaul::testing
