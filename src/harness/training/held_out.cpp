#include "harness/training/held_out.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"

namespace longhaul::harness {

HeldOut::HeldOut(const training::TrainingData& data, const nn::ModelShape& shape, int most)
    : shape_{shape},
      classes_{data.facts().classes},
      texts_{data.held_out(shape.batch, most)},
      math_{nn::make_cpu_math()},
      memory_{*math_, 0},
      model_{*math_, memory_, shape, {0, shape.layers}, nn::Recompute::forward_only, 1} {
  std::erase_if(texts_, [&](const nn::MicrobatchText& text) {
    return text.tokens.size() != shape_.tokens();
  });
  if (texts_.empty())
    fail(
        "{}: what is held out makes no microbatch of {} sequences. Give a larger --held-out, more "
        "data, or a smaller microbatch_size.",
        data.facts().name, shape.batch);
  double targets = 0;
  for (const nn::MicrobatchText& text : texts_)
    targets += static_cast<double>(
        std::ranges::count_if(text.targets, [](std::int32_t target) { return target >= 0; }));
  model_.set_loss_scale(static_cast<float>(1 / targets));
}

int HeldOut::sequences() const { return static_cast<int>(texts_.size()) * shape_.batch; }

double HeldOut::judge(TargetKind kind, std::span<const float> weights) {
  return kind == TargetKind::loss ? loss(weights) : error(weights);
}

double HeldOut::loss(std::span<const float> weights) {
  math_->copy_in(weights, model_.all_masters());
  model_.begin_iteration();
  constexpr MicrobatchId kOne{};  // one at a time
  for (const nn::MicrobatchText& text : texts_) {
    model_.set_tokens(kOne, text.tokens);
    model_.set_targets(kOne, text.targets);
    static_cast<void>(model_.forward(kOne, {}, {}));
  }
  return static_cast<double>(model_.loss());
}

/// The body of the model for a microbatch at a time, its head for each sample and class.
double HeldOut::error(std::span<const float> weights) {
  if (classes_ == 0)
    fail("samples of this text have no class (an error is of classes). Use --target loss=X.");
  nn::Chunk body{*math_, memory_, shape_, {0, shape_.layers - 1}, nn::Recompute::forward_only, 1};
  nn::ModelShape one = shape_;
  one.batch = 1;
  nn::Chunk head{*math_, memory_, one, {shape_.layers - 1, 1}, nn::Recompute::forward_only, 1};
  const std::size_t of_body = body.all_masters().count;
  math_->copy_in(weights.first(of_body), body.all_masters());
  math_->copy_in(weights.subspan(of_body), head.all_masters());
  constexpr MicrobatchId kOne{};
  int wrong = 0;
  for (const nn::MicrobatchText& text : texts_) {
    body.set_tokens(kOne, text.tokens);
    const nn::Buffer hidden = body.forward(kOne, {}, {});
    for (std::size_t i = 0; i < to_size(shape_.batch); ++i) {
      const auto first = text.targets.begin() + static_cast<std::ptrdiff_t>(i * one.tokens());
      const auto target = std::find_if(first, first + static_cast<std::ptrdiff_t>(one.tokens()),
                                       [](std::int32_t number) { return number >= 0; });
      const auto place = static_cast<std::size_t>(target - first);
      const nn::ArrayView sample = hidden.view().part(i * one.boundary(), one.boundary());
      if (likeliest_class(head, sample, place) != *target) ++wrong;
    }
  }
  return static_cast<double>(wrong) / sequences();
}

/// That at which the number at place `target` of a sample has the least loss.
int HeldOut::likeliest_class(nn::Chunk& head, nn::ArrayView hidden, std::size_t target) {
  constexpr MicrobatchId kOne{};
  int likeliest = 0;
  float least = std::numeric_limits<float>::infinity();
  for (int of_class = 0; of_class < classes_; ++of_class) {
    std::vector<std::int32_t> targets(to_size(shape_.sequence), -1);
    targets[target] = of_class;
    nn::Buffer input = memory_.take(hidden.count, "a sample");
    math_->copy(hidden, input.view());
    head.begin_iteration();
    head.set_targets(kOne, targets);
    static_cast<void>(head.forward(kOne, {}, std::move(input)));
    if (head.loss() >= least) continue;
    least = head.loss();
    likeliest = of_class;
  }
  return likeliest;
}

}  // namespace longhaul::harness
