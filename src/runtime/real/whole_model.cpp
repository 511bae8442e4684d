#include "runtime/real/whole_model.hpp"

#include <utility>

namespace longhaul {

WholeModel::WholeModel(std::unique_ptr<Math> math, RealModel model, int microbatches, int replicas)
    : math_{std::move(math)},
      memory_{*math_, 0},
      model_{std::move(model)},
      microbatches_{microbatches},
      replicas_{replicas},
      whole_{*math_, memory_, model_.shape, {0, model_.shape.layers}, Recompute::off, model_.seed} {
  whole_.set_loss_scale(static_cast<float>(
      1 / (static_cast<double>(model_.shape.tokens()) * microbatches * replicas)));
}

void WholeModel::set(std::span<const float> masters) {
  math_->copy_in(masters, whole_.all_masters());
  if (whole_.all_masters().data != whole_.all_weights().data)
    math_->copy(whole_.all_masters(), whole_.all_weights());
}

std::vector<float> WholeModel::masters() const {
  std::vector<float> numbers(whole_.all_masters().count);
  math_->copy_out(whole_.all_masters(), numbers);
  return numbers;
}

WholeModel::Result WholeModel::compute(int iteration, std::span<const float> masters) {
  set(masters);
  whole_.begin_iteration();
  for (int replica = 0; replica < replicas_; ++replica) {
    for (int microbatch = 0; microbatch < microbatches_; ++microbatch) {
      const MicrobatchText text = model_.text(iteration, replica, microbatch);
      whole_.set_tokens(microbatch, text.tokens);
      whole_.set_targets(microbatch, text.targets);
      (void)whole_.forward(microbatch, {}, {});
      (void)whole_.backward(microbatch, {}, {});
    }
  }
  Result result{static_cast<double>(whole_.loss()), {}};
  result.gradients.resize(whole_.all_gradients().count);
  math_->copy_out(whole_.all_gradients(), result.gradients);
  return result;
}

std::vector<float> WholeModel::step(std::span<const float> masters,
                                    std::span<const float> gradients, int step) {
  set(masters);
  math_->copy_in(gradients, whole_.all_gradients());
  if (!optimizer_)
    optimizer_.emplace(*math_, memory_, model_.optimizer, gradients.size(), "reference");
  optimizer_->step(step, whole_.all_gradients(), whole_.all_masters(), whole_.all_weights());
  return this->masters();
}

}  // namespace longhaul
