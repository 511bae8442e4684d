#include "training/whole_model.hpp"

#include <utility>

#include "base/index.hpp"

namespace longhaul {

WholeModel::WholeModel(std::unique_ptr<TensorOps> math, RealModel model, int microbatches,
                       int replicas)
    : model_{std::move(model)},
      microbatches_{microbatches},
      replicas_{replicas},
      reference_{std::move(math), model_.shape, model_.seed, model_.optimizer} {}

WholeModel::Result WholeModel::compute(int iteration, std::span<const float> masters) {
  std::vector<MicrobatchText> texts;
  for (const ReplicaId replica : ids<ReplicaId>(replicas_)) {
    for (int microbatch = 0; microbatch < microbatches_; ++microbatch) {
      texts.push_back(model_.text(iteration, replica, microbatch));
    }
  }
  reference_.set_masters(masters);
  const double loss = reference_.run(texts);
  return {loss, reference_.gradients()};
}

std::vector<float> WholeModel::step(std::span<const float> masters,
                                    std::span<const float> gradients, int step) {
  reference_.set_masters(masters);
  reference_.set_gradients(gradients);
  reference_.step(step);
  return reference_.masters();
}

}  // namespace longhaul
