#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "nn/layers/linear.hpp"
#include "nn/layers/shape.hpp"
#include "nn/memory.hpp"
#include "scenario/scenario.hpp"
#include "training/operators/operator_parameters.hpp"

namespace longhaul::training {

/// The tensors of an operator and a microbatch. Those "of all" hold all tokens; the others, where
/// heads and MLP do not cut them, the rank's part with sequence parallelism.
struct OperatorTensors {
  nn::Buffer input;     ///< of a normalization: what passes from layer to layer
  nn::Buffer output;    ///< where tensor ranks compute it together, the rank's term of the sum
  nn::Buffer inverse;   ///< of a normalization: inverse root mean squares
  nn::Buffer sums;      ///< of attention
  nn::Buffer gathered;  ///< input of all
  nn::Buffer summed;    ///< the output, summed over tensor ranks
  nn::Buffer gradient;  ///< of the input; the rank's term of it likewise
  nn::Buffer gathered_gradient;  ///< of the output, of all
  nn::Buffer summed_gradient;    ///< of the input, summed over tensor ranks
};

/// The layers of a chunk as operators that run one by one (scenario::model_operators()), on a rank
/// that computes its heads and its part of the MLP. An operator takes what others left in
/// OperatorTensors, and what communications brought there. The names of operators are those of
/// docs/layers.md.
class OperatorChunk {
public:
  OperatorChunk(nn::TensorOps& math, nn::DeviceMemory& memory, const nn::ModelShape& shape,
                std::span<const Operator> operators, const TensorPlace& place, int microbatches);

  [[nodiscard]] int operators() const { return static_cast<int>(operators_.size()); }
  [[nodiscard]] std::string_view name(int place) const { return operators_[at(place)].name; }
  [[nodiscard]] const OperatorParameter& parameter(int place) const {
    return parameters_[at(place)];
  }
  /// What the operator computes with; empty without weights.
  [[nodiscard]] nn::ArrayView weights(int place) const { return weights_[at(place)].view(); }
  [[nodiscard]] OperatorTensors& tensors(int place, MicrobatchId microbatch) {
    return tensors_[index_of(microbatch)][at(place)];
  }

  /// Forgets all microbatches, and the loss.
  void begin_iteration(float loss_scale);
  /// All tokens of a microbatch.
  void set_tokens(MicrobatchId microbatch, std::span<const std::int32_t> tokens);
  void set_targets(MicrobatchId microbatch, std::span<const std::int32_t> targets);
  /// What comes into the chunk's first normalization, and the gradient of what leaves it.
  void set_input(MicrobatchId microbatch, nn::Buffer input) {
    tensors(0, microbatch).input = std::move(input);
  }
  void set_gradient(MicrobatchId microbatch, nn::Buffer gradient) {
    incoming_[index_of(microbatch)] = std::move(gradient);
  }

  [[nodiscard]] bool has_gradient(MicrobatchId microbatch) const {
    return static_cast<bool>(incoming_[index_of(microbatch)]);
  }

  /// `again`: of a recomputation, which adds no loss.
  enum class Pass : std::uint8_t { first, again };
  void forward(int place, MicrobatchId microbatch, Pass pass);
  /// The gradient of the input; of a normalization that of its weights, too, added to `weights`.
  void input_gradient(int place, MicrobatchId microbatch, nn::ArrayView weights);
  void weight_gradient(int place, MicrobatchId microbatch, nn::ArrayView weights);

  /// A copy of what passes on to the next chunk, or of its gradient to the one before.
  [[nodiscard]] nn::Buffer output(MicrobatchId microbatch);
  [[nodiscard]] nn::Buffer gradient(MicrobatchId microbatch);
  /// The gradient of what the operator, the last of a part of a layer, hands on: of the rank's
  /// tokens.
  [[nodiscard]] nn::ArrayView gradient_after(int place, MicrobatchId microbatch);
  [[nodiscard]] double loss();
  /// Tokens of what passes from layer to layer, on this rank.
  [[nodiscard]] int rows() const { return rows_; }

private:
  [[nodiscard]] static std::size_t index_of(MicrobatchId microbatch) {
    return at(number(microbatch));
  }
  [[nodiscard]] nn::Buffer take(std::size_t numbers, const char* what) const;
  [[nodiscard]] nn::Buffer take(int rows, int width, const char* what) const {
    return take(to_size(rows) * to_size(width), what);
  }
  [[nodiscard]] nn::Linear linear(int place, int in, int out) const {
    return {weights(place), {}, in, out};
  }
  void normalize(int place, MicrobatchId microbatch);
  void normalization_gradient(int place, MicrobatchId microbatch, nn::ArrayView weights);
  [[nodiscard]] nn::Buffer passed_on(int end, MicrobatchId microbatch);
  [[nodiscard]] nn::ArrayView input_of_all(int place, MicrobatchId microbatch);
  [[nodiscard]] nn::ArrayView gradient_of_all(int place, MicrobatchId microbatch);
  void attend(int place, MicrobatchId microbatch);
  void attend_gradient(int place, MicrobatchId microbatch);
  [[nodiscard]] nn::Linear linear_of(int place) const;

  nn::TensorOps& math_;
  nn::DeviceMemory& memory_;
  nn::ModelShape shape_;
  TensorPlace place_;
  nn::AttentionShape attention_;
  int all_rows_, rows_;
  std::vector<Operator> operators_;
  std::vector<OperatorParameter> parameters_;            ///< by place
  std::vector<nn::Buffer> weights_;                      ///< by place
  std::vector<std::vector<OperatorTensors>> tensors_;    ///< by microbatch and place
  std::vector<nn::Buffer> incoming_, tokens_, targets_;  ///< by microbatch
  nn::Buffer losses_;  ///< what counts, and what recomputation makes once more
  float loss_scale_ = 1;
};

}  // namespace longhaul::training
