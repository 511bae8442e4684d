#pragma once

#include "device/cuda/select_blocks.hpp"

namespace longhaul::device {

/// Tiles in runs of `each`, of which there are at most kMostRuns.
struct TileRuns {
  unsigned tiles, each;
};

/// Puts what the tiles brought in their order: `brought_values` and `brought_blocks` to `values`
/// and `blocks`, unless there were more than there is room for. The next kernel after the tiles' in
/// `stream`.
void order_blocks(cudaStream_t stream, int block, TileRuns runs, const SelectionRoom& of);

}  // namespace longhaul::device
