#include <cmath>
#include <unordered_map>

#include "base/index.hpp"
#include "nn/layers/layer.hpp"
#include "nn/layers/linear.hpp"

namespace longhaul::nn {

namespace {

/// The tensors that a decoder layer keeps of a microbatch; docs/layers.md has the sizes. Names of
/// gradients begin with d. Kept by F for D: input to gate_up; by F for W: normed, attended,
/// middle_normed, gated; by D for W: the gradients.
struct DecoderActivations {
  Buffer input, inverse, normed, qkv, attended, log_sums;
  Buffer middle, middle_inverse, middle_normed, gate_up, gated;
  Buffer doutput, dgate_up, dmiddle, dqkv;
};

/// A layer of Llama 3 (Dubey et al. 2024, section 3.2; Touvron et al. 2023, section 2.2): norm
/// before each half, rotary positions, grouped heads (Ainslie et al. 2023), SwiGLU (Shazeer 2020),
/// no bias.
class Decoder final : public Layer {
public:
  Decoder(const ModelShape& shape, int index);
  [[nodiscard]] std::vector<ParameterNeed> needs() const override;
  void bind(std::span<const Parameter> parameters) override;
  void set_batch(int sequences) override {
    shape_.batch = attention_.batch = sequences;
    rows_ = static_cast<int>(shape_.tokens());
  }
  [[nodiscard]] Buffer forward(const BlockContext& work, Buffer input, Output output) override;
  [[nodiscard]] Buffer forget(MicrobatchId microbatch) override;
  [[nodiscard]] Buffer input_gradient(const BlockContext& work, Buffer gradient) override;
  void weight_gradient(const BlockContext& work) override;

private:
  void attend(const BlockContext& work, DecoderActivations& kept) const;
  void feed_forward(const BlockContext& work, DecoderActivations& kept) const;
  void feed_forward_gradient(const BlockContext& work, DecoderActivations& kept) const;
  [[nodiscard]] Buffer attend_gradient(const BlockContext& work, DecoderActivations& kept) const;
  /// A buffer of `width` numbers a token.
  [[nodiscard]] Buffer take(const BlockContext& work, int width, const char* what) const {
    return work.take(shape_.tokens() * to_size(width), index_, what);
  }
  [[nodiscard]] Buffer take_sums(const BlockContext& work, int width, const char* what) const {
    return work.take(shape_.tokens() * to_size(width), NumberType::f32, index_, what);
  }

  ModelShape shape_;
  AttentionShape attention_;
  int index_, rows_;
  Norm norm_, middle_norm_;
  Linear qkv_, output_, gate_up_, down_;
  std::unordered_map<int, DecoderActivations> kept_;
};

Decoder::Decoder(const ModelShape& shape, int index)
    : shape_{shape},
      attention_{shape.batch, shape.sequence, shape.heads, shape.kv_heads, shape.head_size()},
      index_{index},
      rows_{static_cast<int>(shape.tokens())} {
  const int width = static_cast<int>(attention_.width());
  norm_.width = middle_norm_.width = shape.hidden;
  qkv_ = {{}, {}, shape.hidden, width};
  output_ = {{}, {}, shape.hidden, shape.hidden};
  gate_up_ = {{}, {}, shape.hidden, 2 * shape.intermediate};
  down_ = {{}, {}, shape.intermediate, shape.hidden};
}

std::vector<ParameterNeed> Decoder::needs() const {
  const auto hidden = to_size(shape_.hidden);
  // The term added to the residual is smaller the more layers add to it (Radford et al. 2019, 2.3).
  const float residual = kWeightBound / std::sqrt(2.0F * static_cast<float>(shape_.layers - 2));
  const auto name = [this](const char* what) { return fmt::format("layer {} {}", index_, what); };
  return {{name("attention.norm"), hidden, 0},
          {name("attention.qkv"), qkv_.count(), kWeightBound, to_size(qkv_.out)},
          {name("attention.output"), output_.count(), residual, to_size(output_.out)},
          {name("feedforward.norm"), hidden, 0},
          {name("feedforward.gate_up"), gate_up_.count(), kWeightBound, to_size(gate_up_.out)},
          {name("feedforward.down"), down_.count(), residual, to_size(down_.out)}};
}

void Decoder::bind(std::span<const Parameter> parameters) {
  const auto set = [](auto& piece, const Parameter& parameter) {
    piece.gradient = parameter.gradient;
    return parameter.weights;
  };
  norm_.weight = set(norm_, parameters[0]);
  qkv_.weights = set(qkv_, parameters[1]);
  output_.weights = set(output_, parameters[2]);
  middle_norm_.weight = set(middle_norm_, parameters[3]);
  gate_up_.weights = set(gate_up_, parameters[4]);
  down_.weights = set(down_, parameters[5]);
}

Buffer Decoder::forward(const BlockContext& work, Buffer input, Output output) {
  DecoderActivations& kept = kept_[work.microbatch];
  kept.input = std::move(input);
  attend(work, kept);
  feed_forward(work, kept);
  if (output == Output::leave) return {};
  Buffer out = take(work, shape_.hidden, "output");
  work.math.copy(kept.middle.view(), out.view());
  down_.forward_onto(work.math, rows_, kept.gated.view(), out.view());
  return out;
}

void Decoder::attend(const BlockContext& work, DecoderActivations& kept) const {
  TensorOps& math = work.math;
  kept.inverse = take_sums(work, 1, "inverse root mean squares");
  kept.normed = take(work, shape_.hidden, "normed input");
  math.rms_norm(kept.input.view(), norm_.weight, norm_.width, kept.normed.view(),
                kept.inverse.view());
  kept.qkv = take(work, qkv_.out, "queries, keys and values");
  qkv_.forward(math, rows_, kept.normed.view(), kept.qkv.view());
  math.rotary(attention_, shape_.rotary_theta, Direction::forward, kept.qkv.view());
  kept.attended = take(work, shape_.hidden, "attention");
  kept.log_sums = take_sums(work, shape_.heads, "attention's sums");
  math.attention(attention_, kept.qkv.view(), kept.attended.view(), kept.log_sums.view());
  kept.middle = take(work, shape_.hidden, "middle");
  math.copy(kept.input.view(), kept.middle.view());
  output_.forward_onto(math, rows_, kept.attended.view(), kept.middle.view());
}

void Decoder::feed_forward(const BlockContext& work, DecoderActivations& kept) const {
  TensorOps& math = work.math;
  kept.middle_inverse = take_sums(work, 1, "inverse root mean squares");
  kept.middle_normed = take(work, shape_.hidden, "normed middle");
  math.rms_norm(kept.middle.view(), middle_norm_.weight, middle_norm_.width,
                kept.middle_normed.view(), kept.middle_inverse.view());
  kept.gate_up = take(work, gate_up_.out, "gate and up");
  gate_up_.forward(math, rows_, kept.middle_normed.view(), kept.gate_up.view());
  kept.gated = take(work, shape_.intermediate, "gated");
  math.swiglu(kept.gate_up.view(), shape_.intermediate, kept.gated.view());
}

Buffer Decoder::forget(MicrobatchId microbatch) {
  const auto found = kept_.find(microbatch);
  Buffer input = std::move(found->second.input);
  kept_.erase(found);
  return input;
}

Buffer Decoder::input_gradient(const BlockContext& work, Buffer gradient) {
  DecoderActivations& kept = kept_.at(work.microbatch);
  kept.doutput = std::move(gradient);
  feed_forward_gradient(work, kept);
  return attend_gradient(work, kept);
}

void Decoder::feed_forward_gradient(const BlockContext& work, DecoderActivations& kept) const {
  TensorOps& math = work.math;
  Buffer dgated = take(work, shape_.intermediate, "gradient of gated");
  down_.input_gradient(math, rows_, kept.doutput.view(), dgated.view());
  kept.dgate_up = take(work, gate_up_.out, "gradient of gate and up");
  math.swiglu_gradient(kept.gate_up.view(), dgated.view(), shape_.intermediate,
                       kept.dgate_up.view());
  kept.gate_up = {};
  dgated = {};
  const Buffer dnormed = take(work, shape_.hidden, "gradient of normed middle");
  gate_up_.input_gradient(math, rows_, kept.dgate_up.view(), dnormed.view());
  kept.dmiddle = take(work, shape_.hidden, "gradient of middle");
  math.copy(kept.doutput.view(), kept.dmiddle.view());
  math.rms_norm_input_gradient(kept.middle.view(), middle_norm_.weight, kept.middle_inverse.view(),
                               dnormed.view(), middle_norm_.width, true, kept.dmiddle.view());
  math.rms_norm_weight_gradient(kept.middle.view(), kept.middle_inverse.view(), dnormed.view(),
                                middle_norm_.width, middle_norm_.gradient);
  kept.middle = {};
  kept.middle_inverse = {};
}

Buffer Decoder::attend_gradient(const BlockContext& work, DecoderActivations& kept) const {
  TensorOps& math = work.math;
  Buffer dattended = take(work, shape_.hidden, "gradient of attention");
  output_.input_gradient(math, rows_, kept.dmiddle.view(), dattended.view());
  kept.dqkv = take(work, qkv_.out, "gradient of queries, keys and values");
  math.attention_gradient(attention_, kept.qkv.view(), kept.attended.view(), kept.log_sums.view(),
                          dattended.view(), kept.dqkv.view());
  kept.qkv = {};
  kept.log_sums = {};
  dattended = {};
  math.rotary(attention_, shape_.rotary_theta, Direction::inverse, kept.dqkv.view());
  const Buffer dnormed = take(work, shape_.hidden, "gradient of normed input");
  qkv_.input_gradient(math, rows_, kept.dqkv.view(), dnormed.view());
  Buffer dinput = take(work, shape_.hidden, "gradient of input");
  math.copy(kept.dmiddle.view(), dinput.view());
  math.rms_norm_input_gradient(kept.input.view(), norm_.weight, kept.inverse.view(), dnormed.view(),
                               norm_.width, true, dinput.view());
  math.rms_norm_weight_gradient(kept.input.view(), kept.inverse.view(), dnormed.view(), norm_.width,
                                norm_.gradient);
  kept.input = {};
  kept.inverse = {};
  return dinput;
}

void Decoder::weight_gradient(const BlockContext& work) {
  const auto found = kept_.find(work.microbatch);
  const DecoderActivations& kept = found->second;
  down_.weight_gradient(work.math, rows_, kept.doutput.view(), kept.gated.view());
  gate_up_.weight_gradient(work.math, rows_, kept.dgate_up.view(), kept.middle_normed.view());
  output_.weight_gradient(work.math, rows_, kept.dmiddle.view(), kept.attended.view());
  qkv_.weight_gradient(work.math, rows_, kept.dqkv.view(), kept.normed.view());
  kept_.erase(found);
}

}  // namespace

std::unique_ptr<Layer> make_decoder(const ModelShape& shape, int index) {
  return std::make_unique<Decoder>(shape, index);
}

}  // namespace longhaul::nn
