#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "nn/layers/chunk.hpp"
#include "nn/layers/text.hpp"
#include "scenario/training.hpp"

namespace longhaul::training {

/// Where a pipeline is cut, and what activations and their gradients become on their way over it.
struct ReplayCuts {
  std::vector<int> after;  ///< so many layers, ascending; where nothing is rounded no cut is needed
  ActivationCompression travels{};
};

/// All layers of one replica. Numbers are those of Chunk::all_weights() of the whole model.
class ReplayModel {
public:
  /// Both outlive this. Throws Error where cuts are none of the model, or as nn::Chunk does.
  ReplayModel(nn::TensorOps& math, nn::DeviceMemory& memory, const nn::ModelShape& shape,
              const ReplayCuts& cuts, std::uint64_t seed);

  void set_loss_scale(float scale);
  void set_batch(int sequences);
  void begin_iteration();
  /// Gradients become those of the microbatches from now on.
  void zero_gradients();
  void set_weights(std::span<const float> weights);
  /// F and then B of one microbatch.
  void run(MicrobatchId microbatch, const nn::MicrobatchText& text);

  [[nodiscard]] std::size_t numbers() const { return numbers_; }
  [[nodiscard]] float loss() { return chunks_.back()->loss(); }
  void copy_weights(std::span<float> to) const;
  void copy_gradients(std::span<float> to) const;

private:
  /// A message over a cut: forward and backward ones are counted from 0 in the order in which they
  /// are made of one microbatch.
  void send(const nn::Buffer& travels, int message, MicrobatchId microbatch);
  void code(std::span<float> numbers) const;
  template <typename Numbers, typename Work>
  void for_stretches(std::span<Numbers> numbers, Work&& work) const;

  nn::TensorOps& math_;
  ActivationCompression travels_;
  /// By message and microbatch: what its sender, or its receiver, remembers of it.
  std::map<std::pair<int, MicrobatchId>, std::vector<float>> memory_;
  std::size_t numbers_ = 0;
  std::vector<std::unique_ptr<nn::Chunk>> chunks_;  ///< one more than cuts
};

}  // namespace longhaul::training
