#include "harness/training/held_out.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"

namespace longhaul::harness {

HeldOut::HeldOut(const training::TrainingData& data, const nn::ModelShape& shape, int most)
    : shape_{shape},
      texts_{data.held_out(shape.batch, most)},
      math_{nn::make_cpu_math()},
      memory_{*math_, 0},
      model_{*math_, memory_, shape, {0, shape.layers}, nn::Recompute::off, 1} {
  std::erase_if(texts_, [&](const nn::MicrobatchText& text) {
    return text.tokens.size() != shape_.tokens();
  });
  if (texts_.empty())
    fail(
        "{}: what is held out makes no microbatch of {} sequences. Give more data, or a smaller "
        "microbatch_size.",
        data.facts().name, shape.batch);
  double targets = 0;
  for (const nn::MicrobatchText& text : texts_)
    targets += static_cast<double>(
        std::ranges::count_if(text.targets, [](std::int32_t target) { return target >= 0; }));
  model_.set_loss_scale(static_cast<float>(1 / targets));
}

int HeldOut::sequences() const { return static_cast<int>(texts_.size()) * shape_.batch; }

double HeldOut::loss(std::span<const float> weights) {
  math_->copy_in(weights, model_.all_masters());
  model_.begin_iteration();
  constexpr MicrobatchId kOne{};  // one at a time
  for (const nn::MicrobatchText& text : texts_) {
    model_.set_tokens(kOne, text.tokens);
    model_.set_targets(kOne, text.targets);
    static_cast<void>(model_.forward(kOne, {}, {}));
    model_.drop(kOne);
  }
  return static_cast<double>(model_.loss());
}

}  // namespace longhaul::harness
