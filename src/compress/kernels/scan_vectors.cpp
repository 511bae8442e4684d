// The scan with vector instructions. Sums follow the tree of scan.hpp, so that scores are equal
// bits.
#include "compress/kernels/cpu_level.hpp"
#include "compress/kernels/scan.hpp"

#if defined(__x86_64__)

#include <array>

#include <immintrin.h>

namespace longhaul::compress {
namespace {

constexpr std::size_t kGroup = 8;  ///< blocks whose scores make one vector

LONGHAUL_TARGET_AVX2 LONGHAUL_ALWAYS_INLINE __m256 magnitude(__m256 numbers) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), numbers);
}

/// Eight numbers at `at`, after the addend's were added to them.
template <bool kAdds>
LONGHAUL_TARGET_AVX2 LONGHAUL_ALWAYS_INLINE __m256 eight(float* at, const float* addend) {
  __m256 numbers = _mm256_loadu_ps(at);
  if constexpr (kAdds) {
    numbers = _mm256_add_ps(numbers, _mm256_loadu_ps(addend));
    _mm256_storeu_ps(at, numbers);
  }
  return magnitude(numbers);
}

/// The first step of a block of 16: magnitudes i and i + 8.
template <bool kAdds>
LONGHAUL_TARGET_AVX2 LONGHAUL_ALWAYS_INLINE __m256 sixteen(float* at, const float* addend) {
  return _mm256_add_ps(eight<kAdds>(at, addend), eight<kAdds>(at + 8, addend + 8));
}

template <bool kAdds>
LONGHAUL_TARGET_AVX512 LONGHAUL_ALWAYS_INLINE __m256 sixteen_at_once(float* at,
                                                                     const float* addend) {
  __m512 numbers = _mm512_loadu_ps(at);
  if constexpr (kAdds) {
    numbers = _mm512_add_ps(numbers, _mm512_loadu_ps(addend));
    _mm512_storeu_ps(at, numbers);
  }
  const __m512 magnitudes = _mm512_abs_ps(numbers);
  return _mm256_add_ps(_mm512_castps512_ps256(magnitudes), _mm512_extractf32x8_ps(magnitudes, 1));
}

/// Steps i + 2 and i + 1 of pairs of lanes: of v[j], which holds four partial sums of one block in
/// each half, the sums of the lower halves, then of the upper ones.
LONGHAUL_TARGET_AVX2 LONGHAUL_ALWAYS_INLINE __m256 sums_of_fours(const __m256 (&v)[4]) {
  const __m256d a = _mm256_castps_pd(v[0]), b = _mm256_castps_pd(v[1]);
  const __m256d c = _mm256_castps_pd(v[2]), d = _mm256_castps_pd(v[3]);
  const __m256 x = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)),
                                 _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
  const __m256 y = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(c, d)),
                                 _mm256_castpd_ps(_mm256_unpackhi_pd(c, d)));
  return _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x88), _mm256_shuffle_ps(x, y, 0xdd));
}

/// Sums of eight vectors of eight partial sums, in order.
LONGHAUL_TARGET_AVX2 LONGHAUL_ALWAYS_INLINE __m256 sums_of_eights(const __m256 (&v)[8]) {
  __m256 halves[4];
  for (int j = 0; j < 4; ++j)
    halves[j] = _mm256_add_ps(_mm256_permute2f128_ps(v[j], v[j + 4], 0x20),
                              _mm256_permute2f128_ps(v[j], v[j + 4], 0x31));
  return sums_of_fours(halves);
}

/// Scores of eight blocks from `at` on.
template <int kBlock, bool kAdds>
LONGHAUL_TARGET_AVX2 LONGHAUL_ALWAYS_INLINE __m256 eight_scores(float* at, const float* addend) {
  if constexpr (kBlock == 1) {
    return eight<kAdds>(at, addend);
  } else if constexpr (kBlock == 4) {
    __m256 v[4];
    for (int j = 0; j < 4; ++j) v[j] = eight<kAdds>(at + 8 * j, addend + 8 * j);
    return _mm256_permutevar8x32_ps(sums_of_fours(v), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  } else {
    __m256 v[8];
    for (int j = 0; j < 8; ++j) {
      if constexpr (kBlock == 8)
        v[j] = eight<kAdds>(at + 8 * j, addend + 8 * j);
      else
        v[j] = sixteen<kAdds>(at + 16 * j, addend + 16 * j);
    }
    return sums_of_eights(v);
  }
}

LONGHAUL_TARGET_AVX2 LONGHAUL_ALWAYS_INLINE void append(unsigned mask, __m256 scores,
                                                        std::uint32_t first, Found& found) {
  alignas(32) std::array<float, kGroup> all;
  _mm256_store_ps(all.data(), scores);
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(mask));
    found.scores[found.size] = all[lane];
    found.blocks[found.size++] = first + lane;
  }
}

/// Appends those of eight blocks that are above the limits, and takes the scores into the largest.
LONGHAUL_TARGET_AVX2 LONGHAUL_ALWAYS_INLINE void take(__m256 scores, __m256 limits,
                                                      std::uint32_t first, __m256i& largest,
                                                      Found& found) {
  largest = _mm256_max_epi32(largest, _mm256_castps_si256(scores));
  const __m256 above = _mm256_cmp_ps(scores, limits, _CMP_GT_OQ);
  const auto mask = static_cast<unsigned>(_mm256_movemask_ps(above));
  if (mask != 0) append(mask, scores, first, found);
}

LONGHAUL_TARGET_AVX2 LONGHAUL_ALWAYS_INLINE bool all_finite(__m256i largest) {
  const __m256i bad = _mm256_cmpgt_epi32(largest, _mm256_set1_epi32(0x7f7f'ffff));
  return _mm256_testz_si256(bad, bad) != 0;
}

/// The blocks from `block` on, which are no whole group.
template <int kBlock, bool kAdds>
bool scan_rest(const ScanRange& range, std::size_t block, float limit, Found& found) {
  const ScanRange rest{range.numbers + block * kBlock,
                       kAdds ? range.addend + block * kBlock : nullptr, range.blocks - block,
                       range.first_block + static_cast<std::uint32_t>(block)};
  return scan_plain(kBlock, kAdds)(rest, limit, found);
}

template <int kBlock, bool kAdds>
LONGHAUL_TARGET_AVX2 bool avx2_kernel(const ScanRange& range, float limit, Found& found) {
  const __m256 limits = _mm256_set1_ps(limit);
  __m256i largest = _mm256_setzero_si256();
  std::size_t block = 0;
  for (; block + kGroup <= range.blocks; block += kGroup) {
    float* const at = range.numbers + block * kBlock;
    const float* const addend = kAdds ? range.addend + block * kBlock : at;
    take(eight_scores<kBlock, kAdds>(at, addend), limits,
         range.first_block + static_cast<std::uint32_t>(block), largest, found);
  }
  const bool finite = all_finite(largest);
  return scan_rest<kBlock, kAdds>(range, block, limit, found) && finite;
}

/// Blocks of 16.
template <bool kAdds>
LONGHAUL_TARGET_AVX512 bool avx512_kernel(const ScanRange& range, float limit, Found& found) {
  const __m256 limits = _mm256_set1_ps(limit);
  __m256i largest = _mm256_setzero_si256();
  std::size_t block = 0;
  for (; block + kGroup <= range.blocks; block += kGroup) {
    float* const at = range.numbers + block * 16;
    const float* const addend = kAdds ? range.addend + block * 16 : at;
    __m256 v[8];
    for (int j = 0; j < 8; ++j) v[j] = sixteen_at_once<kAdds>(at + 16 * j, addend + 16 * j);
    take(sums_of_eights(v), limits, range.first_block + static_cast<std::uint32_t>(block), largest,
         found);
  }
  const bool finite = all_finite(largest);
  return scan_rest<16, kAdds>(range, block, limit, found) && finite;
}

/// Single numbers, of which more are found than of blocks: without a branch. What is found is
/// compressed in a register and stored whole, since compressing stores take 100 cycles and more on
/// some processors (Zen 4).
template <bool kAdds>
LONGHAUL_TARGET_AVX512 bool avx512_numbers(const ScanRange& range, float limit, Found& found) {
  constexpr std::size_t kLanes = 16;
  const __m512 limits = _mm512_set1_ps(limit);
  __m512i largest = _mm512_setzero_si512();
  __m512i blocks =
      _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(range.first_block)),
                       _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  std::size_t size = found.size, block = 0;
  for (; block + kLanes <= range.blocks; block += kLanes) {
    __m512 numbers = _mm512_loadu_ps(range.numbers + block);
    if constexpr (kAdds) {
      numbers = _mm512_add_ps(numbers, _mm512_loadu_ps(range.addend + block));
      _mm512_storeu_ps(range.numbers + block, numbers);
    }
    const __m512 scores = _mm512_abs_ps(numbers);
    largest = _mm512_max_epi32(largest, _mm512_castps_si512(scores));
    const __mmask16 above = _mm512_cmp_ps_mask(scores, limits, _CMP_GT_OQ);
    _mm512_storeu_ps(found.scores + size, _mm512_maskz_compress_ps(above, scores));
    _mm512_storeu_si512(found.blocks + size, _mm512_maskz_compress_epi32(above, blocks));
    size += static_cast<std::size_t>(__builtin_popcount(above));
    blocks = _mm512_add_epi32(blocks, _mm512_set1_epi32(kLanes));
  }
  found.size = size;
  const bool finite =
      _mm512_cmpgt_epi32_mask(largest, _mm512_set1_epi32(0x7f7f'ffff)) == __mmask16{0};
  return scan_rest<1, kAdds>(range, block, limit, found) && finite;
}

template <bool kAdds>
ScanKernel avx512_for(int block) {
  switch (block) {
    case 1: return avx512_numbers<kAdds>;
    case 16: return avx512_kernel<kAdds>;
    default: return nullptr;  // they gain nothing from longer vectors
  }
}

template <bool kAdds>
ScanKernel avx2_for(int block) {
  switch (block) {
    case 1: return avx2_kernel<1, kAdds>;
    case 4: return avx2_kernel<4, kAdds>;
    case 8: return avx2_kernel<8, kAdds>;
    case 16: return avx2_kernel<16, kAdds>;
    default: return nullptr;
  }
}

}  // namespace

ScanKernel scan_avx2(int block, bool adds) {
  return adds ? avx2_for<true>(block) : avx2_for<false>(block);
}

ScanKernel scan_avx512(int block, bool adds) {
  return adds ? avx512_for<true>(block) : avx512_for<false>(block);
}

}  // namespace longhaul::compress

#else

namespace longhaul::compress {

ScanKernel scan_avx2(int, bool) { return nullptr; }
ScanKernel scan_avx512(int, bool) { return nullptr; }

}  // namespace longhaul::compress

#endif
