#include "cuda/intrinsics.hpp"
#include "cuda/launch.hpp"
#include "device/cuda/order_blocks.hpp"

namespace longhaul::device {
namespace {

constexpr unsigned kAllLanes = ~0U;
constexpr unsigned kWarp = 32, kThreads = 256, kWarps = kThreads / kWarp;

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

static_assert(kMostRuns <= kThreads);

/// Puts what tiles brought in order: a run of tiles for each block of threads, which first adds up
/// what the runs before it have, and kThreads tiles of it at once.
__global__ void __launch_bounds__(kThreads)
    order_tiles(TileRuns runs, unsigned block, SelectionRoom of) {
  LONGHAUL_SHARED unsigned ends[kThreads];
  LONGHAUL_SHARED unsigned brought[kThreads];
  cuda::wait_for_kernel_before();
  if (of.sums->above > of.room) return;
  const unsigned first = blockIdx.x * runs.each, last = min(first + runs.each, runs.tiles);
  const unsigned earlier = threadIdx.x < blockIdx.x ? of.sums->of_runs[threadIdx.x] : 0;
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

}  // namespace

void order_blocks(cudaStream_t stream, int block, TileRuns runs, const SelectionRoom& of) {
  if (runs.tiles == 0) return;
  cuda::launch_prepared(order_tiles, {cuda::blocks_for(runs.tiles, runs.each), kThreads, 0, stream},
                        runs, static_cast<unsigned>(block), of);
}

void give_back_blocks(cudaStream_t stream, int block, const SelectedVector& vector,
                      const SelectionRoom& from) {
  cuda::launch(give_back_tile, {cuda::blocks_for(vector.count, kTileNumbers), kThreads, 0, stream},
               vector.numbers, vector.count, static_cast<unsigned>(block), from);
}

}  // namespace longhaul::device
