#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nn/layers/reference.hpp"
#include "training/layer_work.hpp"

namespace longhaul {

/// The whole model in one chunk on one rank, from any weights: no pipeline, no messages, no parts.
/// Numbers are those of Chunk::all_weights().
class WholeModel {
public:
  /// Weights are the first ones of the model's seed.
  WholeModel(std::unique_ptr<TensorOps> math, RealModel model, int microbatches, int replicas);

  struct Result {
    double loss = 0;
    std::vector<float> gradients;
  };
  /// The result of the model with `masters` as weights, over all microbatches of all replicas.
  [[nodiscard]] Result compute(int iteration, std::span<const float> masters);
  /// The masters after the optimizer's step with `gradients`; moments are kept from step to step.
  [[nodiscard]] std::vector<float> step(std::span<const float> masters,
                                        std::span<const float> gradients, int step);
  [[nodiscard]] std::vector<float> masters() const { return reference_.masters(); }
  [[nodiscard]] NumberType type() const { return reference_.working_type(); }

private:
  RealModel model_;
  int microbatches_, replicas_;
  Reference reference_;
};

}  // namespace longhaul
