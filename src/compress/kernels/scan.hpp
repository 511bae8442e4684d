#pragma once

#include <cstddef>
#include <cstdint>

namespace longhaul::compress {

/// Score of a block: the sum of the magnitudes of its numbers, added as a tree of halves (i and
/// i + block / 2, then i + block / 4, ...), in fp32; of a short last block scaled up to a whole
/// one. Its mean magnitude is that over the block's numbers.
[[nodiscard]] float short_block_score(const float* numbers, std::size_t size, int block);

/// Blocks that a scan found, in order. Room for one more call's blocks after `size`, which it may
/// write to where it finds fewer.
struct Found {
  float* scores;
  std::uint32_t* blocks;
  std::size_t size = 0;
};

/// The most blocks that one call scans; a caller has room for so many more.
inline constexpr std::size_t kBlocksAtOnce = 2048;

/// What to scan: whole blocks of `block` numbers, at most kBlocksAtOnce of them.
struct ScanRange {
  float* numbers;       ///< only read where there is no addend
  const float* addend;  ///< added to `numbers` first; null: nothing is
  std::size_t blocks;
  std::uint32_t first_block;  ///< the number that the first has in the vector
};

/// Appends the blocks with scores above `limit`. False: one of the scores is no finite number.
[[nodiscard]] bool scan(int block, const ScanRange& range, float limit, Found& found);

using ScanKernel = bool (*)(const ScanRange&, float limit, Found&);
/// Null where there is none for blocks of that size.
[[nodiscard]] ScanKernel scan_plain(int block, bool adds);
[[nodiscard]] ScanKernel scan_avx2(int block, bool adds);
[[nodiscard]] ScanKernel scan_avx512(int block, bool adds);

}  // namespace longhaul::compress
