#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nn/layers/chunk.hpp"
#include "training/data/training_data.hpp"

namespace longhaul::harness {

/// Judges weights by samples that no one trains on. One process, off the clock.
class HeldOut {
public:
  /// At most `most` sequences, in whole microbatches of the shape. Throws Error where there is not
  /// one.
  HeldOut(const training::TrainingData& data, const nn::ModelShape& shape, int most);

  /// Mean loss of a number that is predicted, of the whole model's weights
  /// (Chunk::all_weights()).
  [[nodiscard]] double loss(std::span<const float> weights);
  /// Sequences that it judges by.
  [[nodiscard]] int sequences() const;

private:
  nn::ModelShape shape_;
  std::vector<nn::MicrobatchText> texts_;
  std::unique_ptr<nn::TensorOps> math_;
  nn::DeviceMemory memory_;
  nn::Chunk model_;
};

}  // namespace longhaul::harness
