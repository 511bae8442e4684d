#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/listed_enum.hpp"
#include "nn/memory.hpp"

namespace longhaul::nn {

#define LONGHAUL_OPTIMIZER_KINDS(X) X(sgd, "sgd") X(adamw, "adamw")
LONGHAUL_LISTED_ENUM(OptimizerKind, LONGHAUL_OPTIMIZER_KINDS);

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  float learning_rate = 1e-3F;
};

/// Steps the weights of a chunk, or a stretch of them (a rank's shard with ZeRO-1), as flat views:
/// each number by itself, so that any cut gives the same. SGD has no state; AdamW keeps two moments
/// a number, f32, and decays norms as it does matrices.
class Optimizer {
public:
  /// For `count` numbers, which may be 0. Moments begin at 0; errors name them "`of`: first
  /// moments".
  Optimizer(TensorOps& math, DeviceMemory& memory, const OptimizerOptions& options,
            std::size_t count, const std::string& of);

  /// `count` numbers each; `weights` follow `master` and may be the same memory. `step` counts
  /// from 1.
  void step(int step, ArrayView gradient, ArrayView master, ArrayView weights);

  [[nodiscard]] const OptimizerOptions& options() const { return options_; }
  [[nodiscard]] ArrayView mean() const { return mean_.view(); }      ///< AdamW alone
  [[nodiscard]] ArrayView square() const { return square_.view(); }  ///< AdamW alone

private:
  TensorOps* math_;
  OptimizerOptions options_;
  std::size_t count_;
  Buffer mean_, square_;
};

}  // namespace longhaul::nn
