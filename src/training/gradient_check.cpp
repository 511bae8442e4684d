#include "training/gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::training {
namespace {

/// Relative difference of losses: 0 where both are, as with a vocabulary of one token.
double difference(double found, double expected) {
  return found == expected ? 0 : std::abs(found - expected) / std::abs(expected);
}

}  // namespace

Tolerance tolerance_of(NumberType type) {
  return type == NumberType::bf16 ? Tolerance{.same_type = 1e-2} : Tolerance{};
}

double norm(std::span<const float> numbers) {
  double sum = 0;
  for (const float number : numbers) sum += static_cast<double>(number) * number;
  return std::sqrt(sum);
}

double difference(std::span<const float> found, std::span<const float> expected,
                  double norm_of_expected) {
  double sum = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double by = static_cast<double>(found[i]) - expected[i];
    sum += by * by;
  }
  return sum == 0 && !std::isnan(norm_of_expected) ? 0 : std::sqrt(sum) / norm_of_expected;
}

GradientCheck::GradientCheck(std::unique_ptr<WholeModel> reference,
                             std::unique_ptr<WholeModel> cpu_reference)
    : reference_{std::move(reference)},
      cpu_reference_{std::move(cpu_reference)},
      tolerance_{tolerance_of(reference_->type())},
      began_with_{reference_->masters()} {}

std::vector<WrongTensor> GradientCheck::check(const ParameterMap& map,
                                              const IterationNumbers& found, int step) {
  LONGHAUL_ASSERT(map.count == began_with_.size(), "ranks hold {} numbers of {}", map.count,
                  began_with_.size());
  std::vector<WrongTensor> wrong;
  const WholeModel::Result expected = reference_->compute(found.iteration, began_with_);
  const double loss_by = difference(found.loss, expected.loss);
  if (!(loss_by <= tolerance_.same_type))
    wrong.push_back({std::nullopt, "loss", "it", loss_by, tolerance_.same_type});
  compare(map, found.gradients, expected.gradients, "gradient", wrong);
  if (cpu_reference_ && checked_ == 0) compare_with_cpu(map, found.iteration, expected, wrong);
  // From the ranks' own gradients, held against the reference above: where AdamW divides by what is
  // nearly 0, rounding would decide.
  const std::vector<float> stepped =
      reference_->step(began_with_, assembled(map, found.gradients), step);
  compare(map, found.masters, stepped, "weight", wrong);
  began_with_ = assembled(map, found.masters);
  ++checked_;
  return wrong;
}

void GradientCheck::compare(const ParameterMap& map, const std::vector<std::vector<float>>& found,
                            std::span<const float> expected, const char* what,
                            std::vector<WrongTensor>& wrong) {
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    std::span<const float> mine{found[rank]};
    for (const ShardExtent& held : map.of_rank[Rank{static_cast<std::int32_t>(rank)}]) {
      for (const ParameterExtent& tensor : map.tensors) {
        const std::size_t first = std::max(held.first, tensor.first);
        const std::size_t last = std::min(held.first + held.count, tensor.first + tensor.count);
        if (first >= last) continue;
        // The norm of what this rank holds: the whole tensor's would hide a shard of small numbers.
        const std::span<const float> part = expected.subspan(first, last - first);
        const double by =
            difference(mine.subspan(first - held.first, last - first), part, norm(part));
        if (!(by <= tolerance_.same_type))
          wrong.push_back({rank, tensor.name, what, by, tolerance_.same_type});
      }
      mine = mine.subspan(held.count);
    }
  }
}

void GradientCheck::compare_with_cpu(const ParameterMap& map, int iteration,
                                     const WholeModel::Result& reference,
                                     std::vector<WrongTensor>& wrong) {
  const WholeModel::Result cpu_reference = cpu_reference_->compute(iteration, began_with_);
  const double loss_by = difference(reference.loss, cpu_reference.loss);
  if (!(loss_by <= tolerance_.cpu_reference))
    wrong.push_back({std::nullopt, "loss against fp32", "it", loss_by, tolerance_.cpu_reference});
  for (const ParameterExtent& tensor : map.tensors) {
    const auto place = [&](const std::vector<float>& numbers) {
      return std::span{numbers}.subspan(tensor.first, tensor.count);
    };
    const double by = difference(place(reference.gradients), place(cpu_reference.gradients),
                                 norm(place(cpu_reference.gradients)));
    if (!(by <= tolerance_.cpu_reference))
      wrong.push_back(
          {std::nullopt, tensor.name + " against fp32", "gradient", by, tolerance_.cpu_reference});
  }
}

WholeModel::WholeModel(std::unique_ptr<nn::TensorOps> math, TrainingModel model, int microbatches,
                       int replicas)
    : model_{std::move(model)},
      microbatches_{microbatches},
      replicas_{replicas},
      reference_{std::move(math), model_.shape, model_.seed, model_.optimizer} {}

WholeModel::Result WholeModel::compute(int iteration, std::span<const float> masters) {
  std::vector<nn::MicrobatchText> texts;
  for (const ReplicaId replica : ids<ReplicaId>(replicas_)) {
    for (MicrobatchId microbatch{}; microbatch < microbatches_; ++microbatch) {
      texts.push_back(model_.text(iteration, replica, microbatch));
    }
  }
  reference_.set_masters(masters);
  const double loss = reference_.run(texts);
  return {loss, reference_.gradients()};
}

std::vector<ParameterExtent> WholeModel::tensors() const {
  std::vector<ParameterExtent> tensors;
  const std::byte* const first = reference_.parameters().front().weights.data;
  for (const nn::Parameter& each : reference_.parameters())
    tensors.push_back(
        {each.name, to_size(each.weights.data - first) / bytes_of(each.weights.type), each.count});
  return tensors;
}

std::vector<float> WholeModel::step(std::span<const float> masters,
                                    std::span<const float> gradients, int step) {
  reference_.set_masters(masters);
  reference_.set_gradients(gradients);
  reference_.step(step);
  return reference_.masters();
}

}  // namespace longhaul::training
