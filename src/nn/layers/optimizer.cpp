#include "nn/layers/optimizer.hpp"

namespace longhaul::nn {

Optimizer::Optimizer(TensorOps& math, DeviceMemory& memory, const OptimizerOptions& options,
                     std::size_t count, const std::string& of)
    : math_{&math}, options_{options}, count_{count} {
  if (options.kind == OptimizerKind::sgd || count == 0) return;
  mean_ = memory.take(count, NumberType::f32, of + ": first moments");
  square_ = memory.take(count, NumberType::f32, of + ": second moments");
  math.zero(mean_.view());
  math.zero(square_.view());
}

void Optimizer::step(int step, ArrayView gradient, ArrayView master, ArrayView weights) {
  LONGHAUL_ASSERT(gradient.count == count_ && master.count == count_ && weights.count == count_,
                  "{} gradients, {} master weights, {} weights of {}", gradient.count, master.count,
                  weights.count, count_);
  if (count_ == 0) return;
  if (options_.kind == OptimizerKind::sgd) {
    math_->sgd(options_.learning_rate, gradient, master, weights);
    return;
  }
  AdamW adamw;
  adamw.learning_rate = options_.learning_rate;
  adamw.step = step;
  math_->adamw(adamw, gradient, mean(), square(), master, weights);
}

}  // namespace longhaul::nn
