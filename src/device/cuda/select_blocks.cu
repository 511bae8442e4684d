#include "cuda/intrinsics.hpp"
#include "cuda/launch.hpp"
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

/// The packs of a thread, from `first` on. A tile that is all there asks for them without a branch
/// in between.
__device__ void read_packs(const float* numbers, std::size_t first, std::size_t count,
                           FourNumbers (&packs)[kPacks]) {
  if ((blockIdx.x + std::size_t{1}) * kTileNumbers <= count) {
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

/// Scores of the blocks of a pack, by the tree of halves that scan.hpp defines; all lanes of a
/// block get its score. Sums of two do not depend on which is first.
template <unsigned kBlock>
__device__ void score_pack(const FourNumbers& four, float (&scores)[BlockShape<kBlock>::kInPack]) {
  float sums[kPack];
#pragma unroll
  for (unsigned k = 0; k < kPack; ++k) sums[k] = fabsf(four.values[k]);
#pragma unroll
  for (unsigned lanes = BlockShape<kBlock>::kLanes / 2; lanes > 0; lanes /= 2)
#pragma unroll
    for (unsigned k = 0; k < kPack; ++k)
      sums[k] += __shfl_xor_sync(kAllLanes, sums[k], static_cast<int>(lanes));
  constexpr unsigned kWide = kBlock < kPack ? kBlock : kPack;  // sums of a block in this pack
#pragma unroll
  for (unsigned b = 0; b < BlockShape<kBlock>::kInPack; ++b) {
#pragma unroll
    for (unsigned half = kWide / 2; half > 0; half /= 2)
#pragma unroll
      for (unsigned k = 0; k < half; ++k) sums[b * kWide + k] += sums[b * kWide + k + half];
    scores[b] = sums[b * kWide];
  }
}

/// Which blocks of a pack are above the limit: a bit for each. A short last block counts as a whole
/// one. Says where numbers are not finite; sums that overflow are no mistake.
template <unsigned kBlock>
__device__ unsigned blocks_above(const FourNumbers& four, std::size_t at, std::size_t count,
                                 float limit, SelectionSums* sums) {
  float scores[BlockShape<kBlock>::kInPack];
  score_pack<kBlock>(four, scores);
  unsigned above = 0;
#pragma unroll
  for (unsigned b = 0; b < BlockShape<kBlock>::kInPack; ++b) {
    const std::size_t first = (at + b * kBlock) / kBlock * kBlock;
    if (!is_finite(scores[b]))
      for (unsigned k = 0; k < kPack; ++k)
        if (!is_finite(four.values[k]))
          atomicMax(&sums->last_not_finite, ~static_cast<unsigned long long>(at + k));
    if (first >= count) continue;
    float score = scores[b];
    if (count - first < kBlock)
      score *= static_cast<float>(kBlock) / static_cast<float>(count - first);
    if (score > limit) above |= 1U << b;
  }
  return above;
}

/// Blocks of each of the packs of a warp before those of this lane, and of all lanes: a byte for
/// each pack. Lanes after the first of a block count nothing.
struct PackCounts {
  unsigned before, all;
};

static_assert(kPacks == 4 && kWarpPack < 256, "counts of packs are bytes of a word");

template <unsigned kBlock>
__device__ PackCounts count_blocks(const unsigned (&above)[kPacks], unsigned lane) {
  unsigned own = 0;
  if (lane % BlockShape<kBlock>::kLanes == 0)
#pragma unroll
    for (unsigned j = 0; j < kPacks; ++j) own |= static_cast<unsigned>(__popc(above[j])) << (8 * j);
  unsigned sum = own;
#pragma unroll
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const unsigned lower = __shfl_up_sync(kAllLanes, sum, step);
    if (lane >= step) sum += lower;
  }
  const unsigned all = __shfl_sync(kAllLanes, sum, static_cast<int>(kWarp - 1));
  unsigned before = sum - own;
  if constexpr (BlockShape<kBlock>::kLanes > 1)  // lanes of a block: what the first of them says
    before =
        __shfl_sync(kAllLanes, before, static_cast<int>(lane - lane % BlockShape<kBlock>::kLanes));
  return {before, all};
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
                                    const SelectionRoom& to) {
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
                SelectionRoom to) {
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
  unsigned above[kPacks];
#pragma unroll
  for (unsigned j = 0; j < kPacks; ++j)
    above[j] = blocks_above<kBlock>(packs[j], first + j * kWarpPack, count, limit, to.sums);
  const PackCounts counts = count_blocks<kBlock>(above, lane);
  const WarpPlace place = reserve_places(sum_of_bytes(counts.all), warp, lane, to);
  std::size_t at_place = place.first;
#pragma unroll
  for (unsigned j = 0; j < kPacks; ++j) {
    const std::size_t at = first + j * kWarpPack;
    const bool takes = place.fits && above[j] != 0;
    if (takes)
      take_pack<kBlock>(packs[j], above[j], at, at_place + (counts.before >> (8 * j) & 0xffU), to);
    if (kAdds || takes) write_four(numbers, at, count, packs[j]);
    at_place += counts.all >> (8 * j) & 0xffU;
  }
}

/// The sum of `value` over all threads before this one, and over all.
struct ThreadSums {
  unsigned before, all;
};

__device__ ThreadSums sums_of_threads(unsigned value) {
  LONGHAUL_SHARED unsigned of_warps[kWarps];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  unsigned sum = value;
#pragma unroll
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const unsigned lower = __shfl_up_sync(kAllLanes, sum, step);
    if (lane >= step) sum += lower;
  }
  __syncthreads();  // the sums of the call before were read
  if (lane == kWarp - 1) of_warps[warp] = sum;
  __syncthreads();
  unsigned before = 0, all = 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp) before += of_warps[w];
    all += of_warps[w];
  }
  return {before + sum - value, all};
}

/// The tile that has block `at` of those before whose ends it stands.
__device__ unsigned tile_of(unsigned at, const unsigned (&ends)[kThreads]) {
  unsigned low = 0, high = kThreads - 1;
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    if (at < ends[middle])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/// Puts what tiles brought in order: a run of tiles for each block of threads, which first counts
/// what the tiles before it have, and kThreads tiles of it at once.
__global__ void __launch_bounds__(kThreads)
    order_tiles(unsigned tiles, unsigned block, SelectionRoom of) {
  LONGHAUL_SHARED unsigned ends[kThreads];
  LONGHAUL_SHARED unsigned brought[kThreads];
  if (of.sums->above > of.room) return;
  const unsigned each = (tiles + gridDim.x - 1) / gridDim.x;
  const unsigned first = min(blockIdx.x * each, tiles), last = min(first + each, tiles);
  unsigned earlier = 0;
#pragma unroll 8
  for (unsigned t = threadIdx.x; t < first; t += kThreads) earlier += of.tiles[t].count;
  std::size_t done = sums_of_threads(earlier).all;
  for (unsigned t = first; t < last; t += kThreads) {
    const unsigned own = t + threadIdx.x;
    const TileBlocks tile = own < last ? of.tiles[own] : TileBlocks{0, 0};
    const ThreadSums sums = sums_of_threads(tile.count);
    ends[threadIdx.x] = sums.before + tile.count;
    brought[threadIdx.x] = tile.first - sums.before;  // to be added to a block's place
    __syncthreads();
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < sums.all * block; i += kThreads) {
      const unsigned at = i / block, within = i % block;
      const std::size_t from = brought[tile_of(at, ends)] + at;
      of.values[(done + at) * block + within] = of.brought_values[from * block + within];
      if (within == 0) of.blocks[done + at] = of.brought_blocks[from];
    }
    done += sums.all;
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads)
    give_back_tile(float* numbers, std::size_t count, unsigned block, SelectionRoom from) {
  const TileBlocks tile = from.tiles[blockIdx.x];
  if (static_cast<std::size_t>(tile.first) + tile.count > from.room) return;
  for (unsigned i = threadIdx.x; i < tile.count * block; i += kThreads) {
    const std::size_t place = tile.first + i / block;
    const std::size_t at = static_cast<std::size_t>(from.brought_blocks[place]) * block + i % block;
    if (at < count) numbers[at] = from.brought_values[place * block + i % block];
  }
}

__global__ void negate_kernel(const float* from, std::size_t count, float* to) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) to[i] = -from[i];
}

template <unsigned kBlock>
void select_tiles(cudaStream_t stream, const SelectedVector& vector, float limit,
                  const SelectionRoom& to) {
  const cuda::Launch how{cuda::blocks_for(vector.count, kTileNumbers), kThreads, 0, stream};
  if (vector.addend != nullptr)
    cuda::launch(select_tile<kBlock, true>, how, vector.numbers, vector.addend, vector.count, limit,
                 to);
  else
    cuda::launch(select_tile<kBlock, false>, how, vector.numbers, vector.addend, vector.count,
                 limit, to);
}

}  // namespace

void select_blocks(cudaStream_t stream, int block, const SelectedVector& vector, float limit,
                   const SelectionRoom& to) {
  constexpr unsigned kMostRuns = 256;  // of tiles that are put in order
  cuda::check(cudaMemsetAsync(to.sums, 0, sizeof(SelectionSums), stream));
  switch (block) {
    case 1: select_tiles<1>(stream, vector, limit, to); break;
    case 2: select_tiles<2>(stream, vector, limit, to); break;
    case 4: select_tiles<4>(stream, vector, limit, to); break;
    case 8: select_tiles<8>(stream, vector, limit, to); break;
    default: select_tiles<16>(stream, vector, limit, to); break;
  }
  const unsigned tiles = cuda::blocks_for(vector.count, kTileNumbers);
  cuda::launch(order_tiles, {tiles < kMostRuns ? tiles : kMostRuns, kThreads, 0, stream}, tiles,
               static_cast<unsigned>(block), to);
}

void give_back_blocks(cudaStream_t stream, int block, const SelectedVector& vector,
                      const SelectionRoom& from) {
  cuda::launch(give_back_tile, {cuda::blocks_for(vector.count, kTileNumbers), kThreads, 0, stream},
               vector.numbers, vector.count, static_cast<unsigned>(block), from);
}

void negate_numbers(cudaStream_t stream, const float* from, std::size_t count, float* to) {
  cuda::launch(negate_kernel, {cuda::blocks_for(count, kThreads), kThreads, 0, stream}, from, count,
               to);
}

}  // namespace longhaul::device
