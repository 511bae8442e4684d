#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nn/layers/reference.hpp"
#include "training/layer_work.hpp"
#include "training/parameter_map.hpp"

namespace longhaul::training {

/// The whole model in one chunk on one rank, from any weights: no pipeline, no messages, no parts.
/// Numbers are those of Chunk::all_weights().
class WholeModel {
public:
  /// Weights are the first ones of the model's seed.
  WholeModel(std::unique_ptr<nn::TensorOps> math, TrainingModel model, int microbatches,
             int replicas);

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
  /// All of its tensors, ascending.
  [[nodiscard]] std::vector<ParameterExtent> tensors() const;
  [[nodiscard]] NumberType type() const { return reference_.working_type(); }

private:
  TrainingModel model_;
  int microbatches_, replicas_;
  nn::Reference reference_;
};

/// How far a tensor, or the part of it that a rank holds, may be from the reference: norm of the
/// difference over norm of the same numbers of the reference.
struct Tolerance {
  double same_type = 1e-5;      ///< against one rank of the same device
  double cpu_reference = 3e-2;  ///< of that reference against the CPU reference (fp32); bf16 alone
};
[[nodiscard]] Tolerance tolerance_of(NumberType type);

/// A tensor that is not what it should be.
struct WrongTensor {
  std::optional<std::size_t> rank;  ///< none: the loss, or the reference itself
  std::string tensor;
  std::string what;  ///< "gradient", "weight", "it"
  double by = 0;     ///< relative; NaN where numbers are not
  double allowed = 0;
};

/// ||found - expected|| / ||expected||; NaN where either has numbers that are none. 0 where both
/// are 0 alone, infinite where only `expected` is.
[[nodiscard]] double difference(std::span<const float> found, std::span<const float> expected,
                                double norm_of_expected);
[[nodiscard]] double norm(std::span<const float> numbers);

/// The results of an iteration on the ranks, gathered on rank 0. Index: rank; numbers as the map
/// says.
struct IterationNumbers {
  int iteration = 0;
  double loss = 0;
  std::vector<std::vector<float>> gradients;  ///< summed over replicas and copies
  std::vector<std::vector<float>> masters;    ///< after the optimizer's step
};

/// Holds what ranks computed against one rank that computes it all: loss and
/// each gradient from the weights that the iteration began with, and the weights after the
/// optimizer's step with these gradients. On rank 0.
class GradientCheck {
public:
  /// `cpu_reference`: fp32, where the reference is not; nullptr: none.
  GradientCheck(std::unique_ptr<WholeModel> reference, std::unique_ptr<WholeModel> cpu_reference);

  /// Iterations in turn; `step` counts from 1. Everything that differs by more than allowed.
  [[nodiscard]] std::vector<WrongTensor> check(const ParameterMap& map,
                                               const IterationNumbers& found, int step);
  [[nodiscard]] int checked() const { return checked_; }
  [[nodiscard]] double allowed() const { return tolerance_.same_type; }

private:
  void compare(const ParameterMap& map, const std::vector<std::vector<float>>& found,
               std::span<const float> expected, const char* what, std::vector<WrongTensor>& wrong);
  void compare_with_cpu(const ParameterMap& map, int iteration, const WholeModel::Result& reference,
                        std::vector<WrongTensor>& wrong);

  std::unique_ptr<WholeModel> reference_, cpu_reference_;
  Tolerance tolerance_;
  std::vector<float> began_with_;  ///< the model's masters
  int checked_ = 0;
};

}  // namespace longhaul::training
