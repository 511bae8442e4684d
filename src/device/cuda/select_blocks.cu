#include "cuda/intrinsics.hpp"
#include "cuda/launch.hpp"
#include "device/cuda/order_blocks.hpp"
#include "device/cuda/select_blocks.hpp"

namespace longhaul::device {
namespace {

constexpr unsigned kAllLanes = ~0U;
constexpr unsigned kWarp = 32, kThreads = 256, kWarps = kThreads / kWarp;
constexpr unsigned kPack = 4;                      ///< numbers of 16 bytes
constexpr unsigned kPacks = 4;                     ///< of a thread
constexpr unsigned kWarpPack = kWarp * kPack;      ///< numbers that a warp reads at once
constexpr unsigned kStretch = kPacks * kWarpPack;  ///< and all in all, one after the other
static_assert(kTileNumbers == kWarps * kStretch);

using FourNumbers = cuda::Pack<float>;

/// Numbers from `at` on; zeros where the vector has ended.
__device__ FourNumbers read_four(const float* numbers, std::size_t at, std::size_t count) {
  if (at + kPack <= count) return cuda::load_pack(numbers + at);
  FourNumbers four{};
  for (unsigned k = 0; k < kPack; ++k)
    if (at + k < count) four.values[k] = numbers[at + k];
  return four;
}

/// Is this block's tile all there?
__device__ bool is_whole_tile(std::size_t count) {
  return (blockIdx.x + std::size_t{1}) * kTileNumbers <= count;
}

/// The packs of a thread, from `first` on. A tile that is all there asks for them without a branch
/// in between.
__device__ void read_packs(const float* numbers, std::size_t first, std::size_t count,
                           FourNumbers (&packs)[kPacks]) {
  if (is_whole_tile(count)) {
#pragma unroll
    for (unsigned j = 0; j < kPacks; ++j)
      packs[j] = cuda::load_pack(numbers + first + j * kWarpPack);
  } else {
#pragma unroll
    for (unsigned j = 0; j < kPacks; ++j)
      packs[j] = read_four(numbers, first + j * kWarpPack, count);
  }
}

__device__ void write_four(float* numbers, std::size_t at, std::size_t count,
                           const FourNumbers& four) {
  if (at + kPack <= count) {
    cuda::store_pack(numbers + at, four);
    return;
  }
  for (unsigned k = 0; k < kPack; ++k)
    if (at + k < count) numbers[at + k] = four.values[k];
}

__device__ bool is_finite(float number) {
  return (__float_as_uint(number) & 0x7fff'ffffU) < 0x7f80'0000U;
}

/// How blocks lie in packs: several blocks in one, or one over several neighbouring lanes.
template <unsigned kBlock>
struct BlockShape {
  static constexpr unsigned kInPack = kBlock < kPack ? kPack / kBlock : 1;
  static constexpr unsigned kLanes = kBlock > kPack ? kBlock / kPack : 1;
};

/// Packs whose blocks a lane judges: all of its own, or its share of those of a block's lanes, from
/// pack (lane % kLanes) * kJudged on.
template <unsigned kBlock>
constexpr unsigned kJudged = kPacks / BlockShape<kBlock>::kLanes;

/// Scores by the tree of halves that scan.hpp defines. Where a block lies over several lanes, each
/// step of the tree leaves each of two lanes half of the packs. Sums of two do not depend on which
/// is first.
template <unsigned kBlock>
__device__ void score_packs(const FourNumbers (&packs)[kPacks], unsigned lane,
                            float (&scores)[kJudged<kBlock>][BlockShape<kBlock>::kInPack]) {
  float sums[kPacks][kPack];
#pragma unroll
  for (unsigned j = 0; j < kPacks; ++j)
#pragma unroll
    for (unsigned k = 0; k < kPack; ++k) sums[j][k] = fabsf(packs[j].values[k]);
#pragma unroll
  for (unsigned lanes = BlockShape<kBlock>::kLanes / 2; lanes > 0; lanes /= 2) {
    const unsigned kept = kPacks * lanes / BlockShape<kBlock>::kLanes;
    const bool keeps_upper = (lane & lanes) != 0;
#pragma unroll
    for (unsigned j = 0; j < kept; ++j)
#pragma unroll
      for (unsigned k = 0; k < kPack; ++k) {
        const float own = keeps_upper ? sums[j + kept][k] : sums[j][k];
        const float others = keeps_upper ? sums[j][k] : sums[j + kept][k];
        sums[j][k] = own + __shfl_xor_sync(kAllLanes, others, static_cast<int>(lanes));
      }
  }
  constexpr unsigned kWide = kBlock < kPack ? kBlock : kPack;  // sums of a block in a pack
#pragma unroll
  for (unsigned j = 0; j < kJudged<kBlock>; ++j)
#pragma unroll
    for (unsigned b = 0; b < BlockShape<kBlock>::kInPack; ++b) {
#pragma unroll
      for (unsigned half = kWide / 2; half > 0; half /= 2)
#pragma unroll
        for (unsigned k = 0; k < half; ++k) sums[j][b * kWide + k] += sums[j][b * kWide + k + half];
      scores[j][b] = sums[j][b * kWide];
    }
}

/// Is the block from `first` on above the limit? A short last block counts as a whole one; there is
/// none from `count` on.
template <unsigned kBlock>
__device__ bool is_above(float score, std::size_t first, std::size_t count, float limit) {
  if (is_whole_tile(count)) return score > limit;
  if (first >= count) return false;
  if (count - first < kBlock)
    score *= static_cast<float>(kBlock) / static_cast<float>(count - first);
  return score > limit;
}

/// Names the first number that is not finite; sums that overflow are no mistake.
__device__ void note_not_finite(const FourNumbers (&packs)[kPacks], std::size_t first,
                                SelectionSums* sums) {
  for (unsigned j = 0; j < kPacks; ++j)
    for (unsigned k = 0; k < kPack; ++k)
      if (!is_finite(packs[j].values[k]))
        atomicMax(&sums->last_not_finite,
                  ~static_cast<unsigned long long>(first + j * kWarpPack + k));
}

/// Blocks above the limit in the packs of a thread (a bit for each block of a pack; all lanes of a
/// block say the same), and how many there are in each pack of the warp: before those of this lane,
/// and of all lanes; a byte for each pack.
struct BlocksAbove {
  unsigned of_pack[kPacks];
  unsigned before, all;
};

static_assert(kPacks == 4 && kWarpPack < 256, "counts of packs are bytes of a word");

/// Where each block lies in one lane: what the lanes have is added up.
__device__ void count_blocks(unsigned lane, BlocksAbove& above) {
  unsigned own = 0;
#pragma unroll
  for (unsigned j = 0; j < kPacks; ++j)
    own |= static_cast<unsigned>(__popc(above.of_pack[j])) << (8 * j);
  unsigned sum = own;
#pragma unroll
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const unsigned lower = __shfl_up_sync(kAllLanes, sum, step);
    if (lane >= step) sum += lower;
  }
  above.all = __shfl_sync(kAllLanes, sum, static_cast<int>(kWarp - 1));
  above.before = sum - own;
}

/// Where blocks lie over several lanes: `judged` has a bit for each block of the warp, at lane
/// (block's first lane + pack / kJudged) of word (pack % kJudged).
template <unsigned kBlock>
__device__ BlocksAbove spread_blocks(const unsigned (&judged)[kJudged<kBlock>], unsigned lane) {
  constexpr unsigned kLanes = BlockShape<kBlock>::kLanes;
  constexpr unsigned kFirstLanes = ~0U / ((1U << kLanes) - 1);  // of all blocks of a pack
  const unsigned first_lane = lane - lane % kLanes;
  BlocksAbove above{};
#pragma unroll
  for (unsigned j = 0; j < kPacks; ++j) {
    const unsigned of_pack = judged[j % kJudged<kBlock>] >> (j / kJudged<kBlock>)&kFirstLanes;
    if (of_pack == 0) continue;  // for the whole warp: most packs have none
    above.of_pack[j] = of_pack >> first_lane & 1U;
    above.before |= static_cast<unsigned>(__popc(of_pack & ((1U << first_lane) - 1))) << (8 * j);
    above.all |= static_cast<unsigned>(__popc(of_pack)) << (8 * j);
  }
  return above;
}

/// `first`: place of the thread's first number.
template <unsigned kBlock>
__device__ BlocksAbove blocks_above(const FourNumbers (&packs)[kPacks], std::size_t first,
                                    std::size_t count, float limit, SelectionSums* sums) {
  using Shape = BlockShape<kBlock>;
  const unsigned lane = threadIdx.x % kWarp, of_block = lane % Shape::kLanes;
  float scores[kJudged<kBlock>][Shape::kInPack];
  score_packs<kBlock>(packs, lane, scores);
  bool finite = true;
#pragma unroll
  for (unsigned j = 0; j < kJudged<kBlock>; ++j)
#pragma unroll
    for (unsigned b = 0; b < Shape::kInPack; ++b) finite &= is_finite(scores[j][b]);
  if (__any_sync(kAllLanes, !finite)) note_not_finite(packs, first, sums);
  const std::size_t first_judged =
      first - of_block * kPack + of_block * kJudged<kBlock> * kWarpPack;
  if constexpr (Shape::kLanes > 1) {
    unsigned judged[kJudged<kBlock>];
#pragma unroll
    for (unsigned j = 0; j < kJudged<kBlock>; ++j)
      judged[j] = __ballot_sync(
          kAllLanes, is_above<kBlock>(scores[j][0], first_judged + j * kWarpPack, count, limit));
    return spread_blocks<kBlock>(judged, lane);
  } else {
    BlocksAbove above{};
#pragma unroll
    for (unsigned j = 0; j < kPacks; ++j)
#pragma unroll
      for (unsigned b = 0; b < Shape::kInPack; ++b)
        if (is_above<kBlock>(scores[j][b], first_judged + j * kWarpPack + b * kBlock, count, limit))
          above.of_pack[j] |= 1U << b;
    count_blocks(lane, above);
    return above;
  }
}

__device__ unsigned sum_of_bytes(unsigned word) {
  return (word & 0xffU) + (word >> 8U & 0xffU) + (word >> 16U & 0xffU) + (word >> 24U);
}

/// The place of this warp's first block among those of all tiles. Every thread calls it; false:
/// there is no room for this tile's.
struct WarpPlace {
  std::size_t first;
  bool fits;
};

__device__ WarpPlace reserve_places(unsigned of_warp, unsigned warp, unsigned lane,
                                    unsigned tiles_of_run, const SelectionRoom& to) {
  LONGHAUL_SHARED unsigned counts[kWarps];
  LONGHAUL_SHARED unsigned begin;
  if (lane == 0) counts[warp] = of_warp;
  __syncthreads();
  unsigned before = 0, all = 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp) before += counts[w];
    all += counts[w];
  }
  if (threadIdx.x == 0) {
    begin = all > 0 ? atomicAdd(&to.sums->above, all) : 0;
    to.tiles[blockIdx.x] = {begin, all};
    if (all > 0) atomicAdd(&to.sums->of_runs[blockIdx.x / tiles_of_run], all);
  }
  __syncthreads();
  const std::size_t first = begin;
  return {first + before, first + all <= to.room};
}

/// Moves the blocks of a pack that are above the limit out of it, to their places from `place` on.
template <unsigned kBlock>
__device__ void take_pack(FourNumbers& four, unsigned above, std::size_t at, std::size_t place,
                          const SelectionRoom& to) {
  if constexpr (kBlock >= kPack) {
    if (above == 0) return;
    const std::size_t within = at % kBlock;
    cuda::store_pack(to.brought_values + place * kBlock + within, four);
    if (within == 0) to.brought_blocks[place] = static_cast<std::uint32_t>(at / kBlock);
    four = FourNumbers{};
  } else {
#pragma unroll
    for (unsigned b = 0; b < BlockShape<kBlock>::kInPack; ++b) {
      if ((above >> b & 1U) == 0) continue;
#pragma unroll
      for (unsigned k = 0; k < kBlock; ++k) {
        to.brought_values[place * kBlock + k] = four.values[b * kBlock + k];
        four.values[b * kBlock + k] = 0;
      }
      to.brought_blocks[place++] = static_cast<std::uint32_t>((at + b * kBlock) / kBlock);
    }
  }
}

/// One tile: a stretch of numbers for each warp, whose packs follow one another. 4 tiles or more
/// share a multiprocessor, whose reads hide each other's wait.
template <unsigned kBlock, bool kAdds>
__global__ void __launch_bounds__(kThreads, 4)
    select_tile(float* numbers, const float* addend, std::size_t count, float limit,
                unsigned tiles_of_run, SelectionRoom to) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::size_t first = blockIdx.x * kTileNumbers + warp * kStretch + lane * kPack;
  FourNumbers packs[kPacks];
  read_packs(numbers, first, count, packs);
  if constexpr (kAdds) {
    FourNumbers more[kPacks];
    read_packs(addend, first, count, more);
#pragma unroll
    for (unsigned j = 0; j < kPacks; ++j)
#pragma unroll
      for (unsigned k = 0; k < kPack; ++k) packs[j].values[k] += more[j].values[k];
  }
  const BlocksAbove above = blocks_above<kBlock>(packs, first, count, limit, to.sums);
  const WarpPlace place = reserve_places(sum_of_bytes(above.all), warp, lane, tiles_of_run, to);
  std::size_t at_place = place.first;
#pragma unroll
  for (unsigned j = 0; j < kPacks; ++j) {
    const std::size_t at = first + j * kWarpPack;
    const bool takes = place.fits && above.of_pack[j] != 0;
    if (takes)
      take_pack<kBlock>(packs[j], above.of_pack[j], at,
                        at_place + (above.before >> (8 * j) & 0xffU), to);
    if (kAdds || takes) write_four(numbers, at, count, packs[j]);
    at_place += above.all >> (8 * j) & 0xffU;
  }
}

__global__ void negate_kernel(const float* from, std::size_t count, float* to) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) to[i] = -from[i];
}

template <unsigned kBlock>
void select_tiles(cudaStream_t stream, const SelectedVector& vector, float limit,
                  unsigned tiles_of_run, const SelectionRoom& to) {
  const cuda::Launch how{cuda::blocks_for(vector.count, kTileNumbers), kThreads, 0, stream};
  if (vector.addend != nullptr)
    cuda::launch(select_tile<kBlock, true>, how, vector.numbers, vector.addend, vector.count, limit,
                 tiles_of_run, to);
  else
    cuda::launch(select_tile<kBlock, false>, how, vector.numbers, vector.addend, vector.count,
                 limit, tiles_of_run, to);
}

}  // namespace

void select_blocks(cudaStream_t stream, int block, const SelectedVector& vector, float limit,
                   const SelectionRoom& to) {
  const unsigned tiles = cuda::blocks_for(vector.count, kTileNumbers);
  const unsigned each = cuda::blocks_for(tiles, kMostRuns);
  cuda::check(cudaMemsetAsync(to.sums, 0, sizeof(SelectionSums), stream));
  switch (block) {
    case 1: select_tiles<1>(stream, vector, limit, each, to); break;
    case 2: select_tiles<2>(stream, vector, limit, each, to); break;
    case 4: select_tiles<4>(stream, vector, limit, each, to); break;
    case 8: select_tiles<8>(stream, vector, limit, each, to); break;
    default: select_tiles<16>(stream, vector, limit, each, to); break;
  }
  order_blocks(stream, block, {tiles, each}, to);
}

void negate_numbers(cudaStream_t stream, const float* from, std::size_t count, float* to) {
  cuda::launch(negate_kernel, {cuda::blocks_for(count, kThreads), kThreads, 0, stream}, from, count,
               to);
}

}  // namespace longhaul::device
