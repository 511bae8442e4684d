#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

/// StellaTrain's threshold (sections 3.2 and 5.3) over a gradient in the memory of a device: one
/// decision for each block of numbers, or for each number. Scores, order and what stays are those
/// of compress/kernels/scan.hpp, bit for bit; docs/kernels.md counts the bytes.
namespace longhaul::device {

/// Numbers that one block of threads looks at: a tile.
inline constexpr std::size_t kTileNumbers = 4096;

/// The vector that is scanned. Both begin at multiples of 16 bytes.
struct SelectedVector {
  float* numbers;       ///< loses what is taken; with an addend it is the residual
  const float* addend;  ///< added to the numbers first (the gradient); null: nothing is
  std::size_t count;
};

/// Runs of tiles, of one length, that are put in order side by side.
inline constexpr unsigned kMostRuns = 256;

/// What a selection says of all numbers; zero before it begins.
struct SelectionSums {
  unsigned long long last_not_finite;  ///< complement of the first place; 0: there is none
  std::uint32_t above;                 ///< blocks above the limit
  std::uint32_t of_runs[kMostRuns];    ///< and of each run of tiles
};

/// Where a tile has put its blocks among those of the others, who came in any order.
struct TileBlocks {
  std::uint32_t first, count;
};

/// Memory of the device for the results, with room for `room` blocks, each list twice: as tiles
/// bring it, and in order.
struct SelectionRoom {
  SelectionSums* sums;
  TileBlocks* tiles;  ///< one for each tile of the vector
  float *brought_values, *values;
  std::uint32_t *brought_blocks, *blocks;
  std::size_t room;
};

/// Takes the blocks of `block` numbers (1, 2, 4, 8 or 16) with scores above `limit` out of the
/// vector, which keeps zeros in their place: their values (a short last block's filled up with
/// zeros) and their numbers, ascending. Where there are more than `room`, sums->above says how
/// many; `values` and `blocks` are then void, and give_back_blocks must be called.
void select_blocks(cudaStream_t stream, int block, const SelectedVector& vector, float limit,
                   const SelectionRoom& to);

/// After a selection of more blocks than there is room for: puts those that were taken back, so
/// that the vector holds all of the sum.
void give_back_blocks(cudaStream_t stream, int block, const SelectedVector& vector,
                      const SelectionRoom& from);

/// to[i] = -from[i].
void negate_numbers(cudaStream_t stream, const float* from, std::size_t count, float* to);

}  // namespace longhaul::device
