#include "harness/session/operator_session.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "harness/session/planned_overlap.hpp"
#include "training/parameter_map.hpp"

namespace longhaul::harness {
namespace {

/// Rank 0 gets what each rank holds.
std::vector<std::vector<training::ShardRange>> gather_held(
    const comm::Communicator& world, const std::vector<training::ShardRange>& mine) {
  std::vector<int> counts;
  const auto bytes = world.gather(std::as_bytes(std::span{mine}), counts);
  std::vector<std::vector<training::ShardRange>> held;
  const std::byte* at = bytes.data();
  for (const int count : counts) {
    auto& own = held.emplace_back(to_size(count) / sizeof(training::ShardRange));
    if (count > 0) std::memcpy(own.data(), at, to_size(count));
    at += count;
  }
  return held;
}

std::vector<float> copied_out(nn::TensorOps& math, nn::ArrayView view) {
  std::vector<float> numbers(view.count);
  if (view.count > 0) math.copy_out(view, numbers);
  return numbers;
}

}  // namespace

OperatorSession::OperatorSession(engine::Ranks& ranks, const Scenario& scenario,
                                 const ComputeSettings& settings)
    : TrainingSession{ranks, scenario, settings} {
  if (!makes_reference()) return;
  auto reference = make_reference(make_tensor_ops(settings.device, ranks), scenario);
  std::vector<training::ParameterExtent> tensors = reference->tensors();
  check_.emplace(std::move(reference), std::move(tensors));
}

void OperatorSession::begin(const PlannedSchedule& planned, const Scenario& scenario,
                            const std::optional<engine::Fault>& fault) {
  LONGHAUL_ASSERT(!work_, "{} begins again", planned.schedule.name);
  planned_ = &planned;
  fault_ = fault;
  work_ = std::make_unique<training::OperatorWork>(*planned.overlap->iteration,
                                                   planned.overlap->lowered, ranks_.self(), *math_,
                                                   memory_, *step_math_, step_memory_, model_);
  data_plane_ = std::make_unique<training::OperatorDataPlane>(planned.plan, *work_, fault);
  held_ = gather_held(ranks_.world(), work_->weights().held());
  if (!work_->tensor_place().sequence) return;
  const RankPlace own = scenario.place_of(ranks_.self());
  const Rank first = scenario.rank(own.replica, own.stage, 0);
  tensor_ranks_ = ranks_.world().split(static_cast<int>(first), own.tensor);
}

std::unique_ptr<engine::Device> OperatorSession::make_device() {
  return make_layer_device(settings_.device, ranks_, *work_, *math_);
}

void OperatorSession::begin_iteration(int iteration) {
  if (perturbs(fault_, ranks_.self(), iteration)) work_->weights().perturb();
  work_->begin_iteration(iteration);
}

void OperatorSession::complete() {
  work_->end_iteration();
  if (tensor_ranks_) sum_over_tensor_ranks();
}

/// Of weights that each holds whole, where it has the gradients of its tokens.
void OperatorSession::sum_over_tensor_ranks() {
  const nn::ArrayView gradients = work_->weights().gradients();
  std::vector<float> mine;
  for (const training::ShardRange& range : work_->weights().whole_on_tensor_ranks()) {
    const std::vector<float> part = copied_out(*math_, gradients.part(range.first, range.count));
    mine.insert(mine.end(), part.begin(), part.end());
  }
  std::vector<float> sum(mine.size());
  for (const std::vector<float>& each : training::gather_numbers(*tensor_ranks_, mine))
    std::ranges::transform(sum, each, sum.begin(), std::plus{});
  training::broadcast_numbers(*tensor_ranks_, sum);
  std::span<const float> rest{sum};
  for (const training::ShardRange& range : work_->weights().whole_on_tensor_ranks()) {
    math_->copy_in(rest.first(range.count), gradients.part(range.first, range.count));
    rest = rest.subspan(range.count);
  }
}

/// Without sequence parallelism tensor ranks compute the same.
double OperatorSession::loss() {
  const training::TensorPlace& place = work_->tensor_place();
  return place.sequence || place.place == 0 ? work_->loss() : 0;
}

std::vector<training::WrongTensor> OperatorSession::step_and_check(int iteration, double loss,
                                                                   int count) {
  training::WeightBundles& weights = work_->weights();
  auto gradients =
      training::gather_numbers(ranks_.world(), copied_out(*math_, weights.gradients()));
  step(count);
  auto masters = training::gather_numbers(ranks_.world(), copied_out(*math_, weights.masters()));
  if (!check_) return {};
  std::vector<training::RankNumbers> ranks;
  for (std::size_t rank = 0; rank < held_.size(); ++rank)
    ranks.push_back({held_[rank], std::move(gradients[rank]), std::move(masters[rank])});
  return check_->check(iteration, loss, ranks, count);
}

}  // namespace longhaul::harness
