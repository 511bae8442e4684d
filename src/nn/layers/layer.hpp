#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/layers/chunk.hpp"

namespace longhaul::nn {

/// A block of one microbatch, as its layers see it.
struct BlockContext {
  TensorOps& math;
  DeviceMemory& memory;
  std::string_view block;  ///< "F", "D", ...: for messages
  MicrobatchId microbatch{};
  ArrayView tokens, targets;  ///< i32; empty where this chunk holds no such end
  float loss_scale = 1;
  ArrayView loss;  ///< f32, one number: what the head adds to

  /// As DeviceMemory::take; `layer` and `what` ("gate and up") go into the message.
  [[nodiscard]] Buffer take(std::size_t count, NumberType type, int layer, const char* what) const;
  [[nodiscard]] Buffer take(std::size_t count, int layer, const char* what) const {
    return take(count, math.working_type(), layer, what);
  }
};

/// A tensor that a layer asks for.
struct ParameterNeed {
  std::string name;
  std::size_t count = 0;
  float bound = 0;       ///< uniform in (-bound, bound); 0: all ones
  std::size_t rows = 0;  ///< of a matrix, its first dimension; 0: a vector
};

/// Is the layer's output wanted? Recomputing a chunk's last layer makes none.
enum class Output : std::uint8_t { make, leave };

/// One layer of the model with what it keeps of each microbatch in flight.
class Layer {
public:
  Layer() = default;
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  [[nodiscard]] virtual std::vector<ParameterNeed> needs() const = 0;
  /// As many as needs(), in its order.
  virtual void bind(std::span<const Parameter> parameters) = 0;

  /// Keeps what the backward blocks need; gives the output, empty from the head.
  [[nodiscard]] virtual Buffer forward(const BlockContext& work, Buffer input, Output output) = 0;
  /// Gives back what forward() kept, but for the input, which the caller gets.
  [[nodiscard]] virtual Buffer forget(MicrobatchId microbatch) = 0;
  /// D: adds the gradients of norms, too, so that what only they need is not kept for W.
  [[nodiscard]] virtual Buffer input_gradient(const BlockContext& work, Buffer gradient) = 0;
  /// W; nothing of the microbatch is kept afterwards.
  virtual void weight_gradient(const BlockContext& work) = 0;
  /// Sequences of the microbatches from now on. While none is in flight.
  virtual void set_batch(int sequences) = 0;
};

[[nodiscard]] std::unique_ptr<Layer> make_embedding(const ModelShape& shape);
[[nodiscard]] std::unique_ptr<Layer> make_decoder(const ModelShape& shape, int index);
[[nodiscard]] std::unique_ptr<Layer> make_head(const ModelShape& shape);

/// Bound of a uniform number with a standard deviation of 0.02.
constexpr float kWeightBound = 0.02F * 1.7320508F;

}  // namespace longhaul::nn
