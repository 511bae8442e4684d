#pragma once

#include "base/ids.hpp"

namespace longhaul::engine {

/// The math of a rank's real blocks, apart from where and when a device runs it. One caller at a
/// time; blocks in the order of the rank's compute lane.
class BlockWork {
public:
  BlockWork() = default;
  virtual ~BlockWork() = default;
  BlockWork(const BlockWork&) = delete;
  BlockWork& operator=(const BlockWork&) = delete;

  /// Hands the block's calls to TensorOps, on which they take effect in turn: before this returns
  /// (CPU) or some time later (CUDA). Throws Error where the block cannot go on (out of memory).
  virtual void run(OpId block) = 0;
  /// The calls of `block` have taken effect: its inputs may be used again. Called before the engine
  /// hears of its end.
  virtual void ended(OpId block) = 0;
};

}  // namespace longhaul::engine
