#include "compress/kernels/scan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/error.hpp"
#include "compress/kernels/cpu_level.hpp"

namespace longhaul::compress {
namespace {

constexpr std::uint32_t kInfinity = 0x7f80'0000;

template <int kBlock>
float tree_sum(std::array<float, kBlock>& magnitudes) {
  for (int half = kBlock / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      magnitudes[static_cast<std::size_t>(i)] += magnitudes[static_cast<std::size_t>(i + half)];
  return magnitudes[0];
}

template <int kBlock, bool kAdds>
bool scan_blocks(const ScanRange& range, float limit, Found& found) {
  std::uint32_t largest = 0;
  float* numbers = range.numbers;
  for (std::size_t b = 0; b < range.blocks; ++b, numbers += kBlock) {
    std::array<float, kBlock> magnitudes;
    for (std::size_t i = 0; i < kBlock; ++i) {
      if constexpr (kAdds) numbers[i] += range.addend[b * kBlock + i];
      magnitudes[i] = std::fabs(numbers[i]);
    }
    const float score = tree_sum<kBlock>(magnitudes);
    largest = std::max(largest, std::bit_cast<std::uint32_t>(score) & 0x7fff'ffffU);
    if (!(score > limit)) continue;
    found.scores[found.size] = score;
    found.blocks[found.size++] = range.first_block + static_cast<std::uint32_t>(b);
  }
  return largest < kInfinity;
}

template <bool kAdds>
ScanKernel plain_kernel(int block) {
  switch (block) {
    case 1: return scan_blocks<1, kAdds>;
    case 2: return scan_blocks<2, kAdds>;
    case 4: return scan_blocks<4, kAdds>;
    case 8: return scan_blocks<8, kAdds>;
    case 16: return scan_blocks<16, kAdds>;
    default: return nullptr;
  }
}

ScanKernel best_kernel(int block, bool adds) {
  const CpuLevel level = cpu_level();
  ScanKernel kernel = nullptr;
  if (level == CpuLevel::avx512) kernel = scan_avx512(block, adds);
  if (kernel == nullptr && level >= CpuLevel::avx2) kernel = scan_avx2(block, adds);
  return kernel != nullptr ? kernel : scan_plain(block, adds);
}

}  // namespace

ScanKernel scan_plain(int block, bool adds) {
  return adds ? plain_kernel<true>(block) : plain_kernel<false>(block);
}

float short_block_score(const float* numbers, std::size_t size, int block) {
  std::array<float, 16> magnitudes{};
  for (std::size_t i = 0; i < size; ++i) magnitudes[i] = std::fabs(numbers[i]);
  return tree_sum<16>(magnitudes) * (static_cast<float>(block) / static_cast<float>(size));
}

bool scan(int block, const ScanRange& range, float limit, Found& found) {
  LONGHAUL_ASSERT(range.blocks <= kBlocksAtOnce, "{} blocks", range.blocks);
  const ScanKernel kernel = best_kernel(block, range.addend != nullptr);
  LONGHAUL_ASSERT(kernel != nullptr, "blocks of {}", block);
  return kernel(range, limit, found);
}

}  // namespace longhaul::compress
