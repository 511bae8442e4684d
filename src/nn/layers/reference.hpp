#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nn/layers/chunk.hpp"
#include "nn/layers/optimizer.hpp"
#include "nn/layers/text.hpp"

namespace longhaul::nn {

/// The result that any schedule on any number of ranks has to reach: all layers on one device,
/// microbatch by microbatch, F then B, with an arithmetic and memory of its own. Flat numbers are
/// those of Chunk::all_weights() of the whole model.
class Reference {
public:
  /// Weights are those that chunks make of `seed`.
  Reference(std::unique_ptr<TensorOps> math, const ModelShape& shape, std::uint64_t seed,
            const OptimizerOptions& optimizer);

  /// One iteration up to its gradients: `microbatches` of all replicas. Gives the mean loss of a
  /// token. Throws Error where memory does not hold it.
  double run(std::span<const MicrobatchText> microbatches);
  /// The optimizer's step with the gradients as they are; `step` counts from 1.
  void step(int step);

  [[nodiscard]] NumberType working_type() const { return math_->working_type(); }
  [[nodiscard]] std::vector<float> gradients() const { return read(model_.all_gradients()); }
  [[nodiscard]] std::vector<float> masters() const { return read(model_.all_masters()); }
  void set_gradients(std::span<const float> numbers);
  /// The weights that layers multiply with follow.
  void set_masters(std::span<const float> numbers);

  [[nodiscard]] std::span<const Parameter> parameters() const { return model_.parameters(); }
  /// By the name of a parameter, see Parameter::name.
  [[nodiscard]] std::vector<float> gradient(const std::string& name) const;

private:
  [[nodiscard]] std::vector<float> read(ArrayView view) const;

  std::unique_ptr<TensorOps> math_;
  DeviceMemory memory_;
  ModelShape shape_;
  Chunk model_;
  OptimizerOptions options_;
  std::optional<Optimizer> optimizer_;  ///< from the first step on: it takes memory
};

}  // namespace longhaul::nn
