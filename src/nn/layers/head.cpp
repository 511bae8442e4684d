#include <unordered_map>

#include "base/index.hpp"
#include "nn/layers/layer.hpp"
#include "nn/layers/linear.hpp"

namespace longhaul::nn {

namespace {

struct HeadActivations {
  Buffer input, inverse, normed, dlogits;
};

/// The last layer: norm, output matrix (not tied to the embedding, as in Llama), cross-entropy. F
/// makes the gradient of the logits already, in their place.
class Head final : public Layer {
public:
  explicit Head(const ModelShape& shape)
      : shape_{shape}, index_{shape.layers - 1}, rows_{static_cast<int>(shape.tokens())} {
    norm_.width = shape.hidden;
    output_ = {{}, {}, shape.hidden, shape.vocabulary};
  }
  [[nodiscard]] std::vector<ParameterNeed> needs() const override {
    return {{"head.norm", to_size(shape_.hidden), 0},
            {"head.output", output_.count(), kWeightBound, to_size(output_.out)}};
  }
  void bind(std::span<const Parameter> parameters) override {
    norm_ = {parameters[0].weights, parameters[0].gradient, shape_.hidden};
    output_ = {parameters[1].weights, parameters[1].gradient, shape_.hidden, shape_.vocabulary};
  }
  void set_batch(int sequences) override {
    shape_.batch = sequences;
    rows_ = static_cast<int>(shape_.tokens());
  }
  [[nodiscard]] Buffer forward(const BlockContext& work, Buffer input, Output output) override;
  [[nodiscard]] Buffer forget(MicrobatchId microbatch) override;
  [[nodiscard]] Buffer input_gradient(const BlockContext& work, Buffer gradient) override;
  void weight_gradient(const BlockContext& work) override;

private:
  ModelShape shape_;
  int index_, rows_;
  Norm norm_;
  Linear output_;
  std::unordered_map<int, HeadActivations> kept_;
};

Buffer Head::forward(const BlockContext& work, Buffer input, Output /*output*/) {
  HeadActivations& kept = kept_[work.microbatch];
  kept.input = std::move(input);
  kept.inverse = work.take(shape_.tokens(), NumberType::f32, index_, "inverse root mean squares");
  kept.normed = work.take(shape_.boundary(), index_, "normed input");
  work.math.rms_norm(kept.input.view(), norm_.weight, norm_.width, kept.normed.view(),
                     kept.inverse.view());
  kept.dlogits = work.take(shape_.tokens() * to_size(shape_.vocabulary), index_, "logits");
  output_.forward(work.math, rows_, kept.normed.view(), kept.dlogits.view());
  work.math.cross_entropy(work.targets, shape_.vocabulary, work.loss_scale, kept.dlogits.view(),
                          work.loss);
  return {};
}

Buffer Head::forget(MicrobatchId microbatch) {
  const auto found = kept_.find(microbatch);
  Buffer input = std::move(found->second.input);
  kept_.erase(found);
  return input;
}

Buffer Head::input_gradient(const BlockContext& work, Buffer /*gradient*/) {
  HeadActivations& kept = kept_.at(work.microbatch);
  const Buffer dnormed = work.take(shape_.boundary(), index_, "gradient of normed input");
  output_.input_gradient(work.math, rows_, kept.dlogits.view(), dnormed.view());
  Buffer dinput = work.take(shape_.boundary(), index_, "gradient of input");
  work.math.rms_norm_input_gradient(kept.input.view(), norm_.weight, kept.inverse.view(),
                                    dnormed.view(), norm_.width, false, dinput.view());
  work.math.rms_norm_weight_gradient(kept.input.view(), kept.inverse.view(), dnormed.view(),
                                     norm_.width, norm_.gradient);
  kept.input = {};
  kept.inverse = {};
  return dinput;
}

void Head::weight_gradient(const BlockContext& work) {
  const auto found = kept_.find(work.microbatch);
  output_.weight_gradient(work.math, rows_, found->second.dlogits.view(),
                          found->second.normed.view());
  kept_.erase(found);
}

}  // namespace

std::unique_ptr<Layer> make_head(const ModelShape& shape) { return std::make_unique<Head>(shape); }

}  // namespace longhaul::nn
