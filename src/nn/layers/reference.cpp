#include "nn/layers/reference.hpp"

#include <algorithm>
#include <utility>

namespace longhaul::nn {

Reference::Reference(std::unique_ptr<TensorOps> math, const ModelShape& shape, std::uint64_t seed,
                     const OptimizerOptions& optimizer)
    : math_{std::move(math)},
      memory_{*math_, 0},
      shape_{shape},
      model_{*math_, memory_, shape, {0, shape.layers}, Recompute::off, seed},
      options_{optimizer} {}

double Reference::run(std::span<const MicrobatchText> microbatches) {
  model_.begin_iteration();
  const double tokens = static_cast<double>(shape_.tokens() * microbatches.size());
  model_.set_loss_scale(static_cast<float>(1 / tokens));
  constexpr MicrobatchId kOne{};  // one at a time
  for (const MicrobatchText& text : microbatches) {
    model_.set_tokens(kOne, text.tokens);
    model_.set_targets(kOne, text.targets);
    static_cast<void>(model_.forward(kOne, {}, {}));
    static_cast<void>(model_.backward(kOne, {}, {}));
  }
  return model_.loss();
}

void Reference::step(int step) {
  if (!optimizer_) {
    optimizer_.emplace(*math_, memory_, options_, model_.all_weights().count, "reference");
  }
  optimizer_->step(step, model_.all_gradients(), model_.all_masters(), model_.all_weights());
}

void Reference::set_gradients(std::span<const float> numbers) {
  math_->copy_in(numbers, model_.all_gradients());
}

void Reference::set_masters(std::span<const float> numbers) {
  math_->copy_in(numbers, model_.all_masters());
  if (model_.all_masters().data != model_.all_weights().data) {
    math_->copy(model_.all_masters(), model_.all_weights());
  }
}

std::vector<float> Reference::read(ArrayView view) const {
  std::vector<float> numbers(view.count);
  math_->copy_out(view, numbers);
  return numbers;
}

std::vector<float> Reference::gradient(const std::string& name) const {
  const auto found = std::find_if(parameters().begin(), parameters().end(),
                                  [&](const Parameter& each) { return each.name == name; });
  LONGHAUL_ASSERT(found != parameters().end(), "no parameter '{}'", name);
  return read(found->gradient);
}

}  // namespace longhaul::nn
