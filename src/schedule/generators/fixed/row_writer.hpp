#pragma once

#include <vector>

#include "base/index.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule::families {

/// Appends blocks to the row of one device. With recomputation an R stands directly before each D
/// or B. The row is reserved in full, so that no block allocates.
class RowWriter {
public:
  RowWriter(const Scenario& scenario, Schedule& schedule, DeviceId device)
      : row_{schedule.rows[index(device)]}, recompute_{scenario.memory.recompute} {}

  void add(BlockKind kind, ChunkId chunk, MicrobatchId microbatch) {
    if (recompute_ && is_backward(kind)) put(BlockKind::R, chunk, microbatch);
    put(kind, chunk, microbatch);
  }

private:
  void put(BlockKind kind, ChunkId chunk, MicrobatchId microbatch) {
    row_.push_back({.kind = kind, .chunk = chunk, .microbatch = microbatch});
  }

  std::vector<Block>& row_;
  bool recompute_;
};

/// Appends the blocks of one chunk, each kind in order of microbatch. A schedule defined for more
/// microbatches than there are counts to `padded` and leaves out what there is not.
class ChunkWriter {
public:
  ChunkWriter(RowWriter& row, ChunkId chunk, int microbatches)
      : ChunkWriter{row, chunk, microbatches, microbatches} {}
  ChunkWriter(RowWriter& row, ChunkId chunk, int microbatches, int padded)
      : row_{row}, chunk_{chunk}, microbatches_{microbatches}, padded_{padded} {}

  /// The next F, B, D or W of the chunk.
  void next(BlockKind kind) {
    const MicrobatchId microbatch{count_[slot(kind)]++};
    if (microbatch < microbatches_) row_.add(kind, chunk_, microbatch);
  }
  void next(BlockKind kind, int times) {
    for (int i = 0; i < times; ++i) next(kind);
  }
  /// All that are left of a kind.
  void rest(BlockKind kind) { next(kind, padded_ - count(kind)); }
  [[nodiscard]] int count(BlockKind kind) const { return count_[slot(kind)]; }
  [[nodiscard]] bool has(BlockKind kind) const { return count(kind) < padded_; }

private:
  static std::size_t slot(BlockKind kind) { return index(kind); }

  RowWriter& row_;
  ChunkId chunk_;
  int microbatches_;
  int padded_;
  int count_[5] = {};
};

}  // namespace longhaul::schedule::families
