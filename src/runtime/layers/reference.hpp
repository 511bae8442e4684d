#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/layers/chunk.hpp"
#include "runtime/layers/optimizer.hpp"
#include "runtime/layers/text.hpp"

namespace longhaul {

/// What any schedule on any number of ranks has to come to: all layers on one device, microbatch by
/// microbatch, F then B, with an arithmetic and memory of its own.
class Reference {
public:
  /// Weights are those that chunks make of `seed`.
  Reference(std::unique_ptr<Math> math, const ModelShape& shape, std::uint64_t seed,
            const OptimizerOptions& optimizer);

  /// One iteration up to its gradients: `microbatches` of all replicas. Gives the mean loss of a
  /// token. Throws Error where memory does not hold it.
  double run(std::span<const MicrobatchText> microbatches);
  /// The optimizer's step, with the gradients of the last run().
  void step();

  [[nodiscard]] std::span<const Parameter> parameters() const { return model_.parameters(); }
  /// By the name of a parameter, see Parameter::name.
  [[nodiscard]] std::vector<float> gradient(const std::string& name) const;
  [[nodiscard]] std::vector<float> master(const std::string& name) const;

private:
  [[nodiscard]] const Parameter& parameter(const std::string& name) const;
  [[nodiscard]] std::vector<float> read(View view) const;

  std::unique_ptr<Math> math_;
  DeviceMemory memory_;
  ModelShape shape_;
  Chunk model_;
  Optimizer optimizer_;
  int steps_ = 0;
};

}  // namespace longhaul
