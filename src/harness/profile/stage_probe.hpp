#pragma once

#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "nn/layers/chunk.hpp"

namespace longhaul::harness {

/// Times of the blocks of one microbatch on one device, all its chunks together: ns, one value a
/// round.
struct BlockSamples {
  std::vector<double> forward, backward, dgrad, wgrad, recompute;
};

/// Real bytes of one device, as DeviceMemory counts them.
struct StageMemory {
  Bytes weights{};          ///< of the working type: what layers multiply with
  Bytes resident{};         ///< weights, masters and gradients
  Bytes activation{};       ///< of one microbatch, from its F on
  Bytes kept_for_wgrad{};   ///< of one microbatch, between its D and its W
  Bytes kept_recomputed{};  ///< of one microbatch, from its F on, where an R follows
  Bytes peak{};             ///< the most beside `resident`, with one microbatch in flight
  Bytes left_over{};        ///< after W; not 0: a block forgot to give something back
};

/// Runs and times the blocks of one device: chunks of layers in the order of the model, one
/// microbatch at a time. Inputs and gradients are random numbers, the same in every round.
class StageProbe {
public:
  /// `math` outlives this. With Recompute::off rounds measure F, D, W and B, otherwise R.
  StageProbe(nn::TensorOps& math, const nn::ModelShape& shape,
             const std::vector<nn::LayerRange>& chunks, nn::Recompute recompute);

  void round(BlockSamples& samples);
  /// One microbatch forth and back; what was measured so far is not touched.
  void weigh(StageMemory& memory);
  /// Sum over tokens of the last round's losses; 0 without the head.
  [[nodiscard]] float loss();

private:
  [[nodiscard]] nn::Buffer passing(nn::ArrayView like, const char* what);
  void forward(nn::Chunk& chunk, double* time);
  void backward(nn::Chunk& chunk, double* time);
  void input_gradient(nn::Chunk& chunk, double* time);
  [[nodiscard]] Bytes in_flight() const;

  nn::TensorOps& math_;
  nn::ModelShape shape_;
  nn::Recompute recompute_;
  nn::DeviceMemory memory_;
  nn::Buffer input_, gradient_;  ///< what every chunk is fed with
  std::vector<std::int32_t> tokens_;
  std::vector<std::unique_ptr<nn::Chunk>> chunks_;
  std::size_t resident_ = 0;
};

/// `count` numbers below `vocabulary`, always the same ones.
[[nodiscard]] std::vector<std::int32_t> synthetic_tokens(std::size_t count, int vocabulary);

/// Time for which `work` keeps the device busy, ns: from idle to idle.
template <typename Work>
[[nodiscard]] double timed(nn::TensorOps& math, Work work) {
  math.finish();
  const TimePoint begin = now();
  work();
  math.finish();
  return static_cast<double>((now() - begin).count());
}

}  // namespace longhaul::harness
