#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nn/layers/chunk.hpp"
#include "scenario/training.hpp"
#include "training/data/training_data.hpp"

namespace longhaul::harness {

/// Judges weights by samples that no one trains on. One process, off the clock.
class HeldOut {
public:
  /// At most `most` sequences, in whole microbatches of the shape. Throws Error where there is not
  /// one.
  HeldOut(const training::TrainingData& data, const nn::ModelShape& shape, int most);

  /// What a target of that kind is held against, of the whole model's weights
  /// (Chunk::all_weights()): the mean loss of a number that is predicted, or the share of samples
  /// whose class is not the likeliest one. Throws Error where samples have no class.
  [[nodiscard]] double judge(TargetKind kind, std::span<const float> weights);
  /// Sequences that it judges by.
  [[nodiscard]] int sequences() const;

private:
  [[nodiscard]] double loss(std::span<const float> weights);
  [[nodiscard]] double error(std::span<const float> weights);
  [[nodiscard]] int likeliest_class(nn::Chunk& head, nn::ArrayView hidden, std::size_t target);

  nn::ModelShape shape_;
  int classes_;
  std::vector<nn::MicrobatchText> texts_;
  std::unique_ptr<nn::TensorOps> math_;
  nn::DeviceMemory memory_;
  nn::Chunk model_;
};

}  // namespace longhaul::harness
