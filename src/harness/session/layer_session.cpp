#include "harness/session/layer_session.hpp"

#include <cstring>
#include <utility>

#include "nn/cpu/cpu_tensor_ops.hpp"

namespace longhaul::harness {

/// All that survives a change of schedules, of the whole model; on every rank.
struct LayerSession::State {
  std::vector<float> masters, means, squares;
};

LayerSession::LayerSession(engine::Ranks& ranks, const Scenario& scenario,
                           const ComputeSettings& settings)
    : TrainingSession{ranks, scenario, settings} {
  if (!makes_reference()) return;
  const bool needs_cpu_reference =
      math_->working_type() != NumberType::f32 && is_small_model(scenario);
  check_.emplace(make_reference(make_tensor_ops(settings.device, ranks), scenario),
                 needs_cpu_reference ? make_reference(nn::make_cpu_math(), scenario) : nullptr);
}

LayerSession::~LayerSession() = default;

void LayerSession::begin(const PlannedSchedule& planned, const Scenario& scenario,
                         const std::optional<engine::Fault>& fault) {
  std::optional<State> state;
  if (work_) state = gather_state();
  data_plane_.reset();
  work_.reset();
  planned_ = &planned;
  fault_ = fault;
  work_ = std::make_unique<training::LayerWork>(planned.plan, planned.schedule, scenario,
                                                ranks_.self(), *math_, memory_, model_);
  data_plane_ = std::make_unique<training::TensorDataPlane>(planned.plan, ranks_.self(), *work_,
                                                            *step_math_, step_memory_, fault);
  map_ = training::ParameterMap::make(ranks_.world(), work_->stages());
  measured_plan_ = planned.plan;
  if (state) set_state(*state);
}

std::unique_ptr<engine::Device> LayerSession::make_device() {
  return make_layer_device(settings_.device, ranks_, *work_, *math_);
}

void LayerSession::begin_iteration(int iteration) {
  if (perturbs(fault_, ranks_.self(), iteration)) work_->stages().front().perturb();
  work_->begin_iteration(iteration);
}

void LayerSession::step(int step) {
  for (training::StageShard& stage : work_->stages()) stage.step(step);
}

/// The numbers that the rank holds, as its stages return them.
std::vector<float> LayerSession::pack(nn::ArrayView (training::StageShard::*what)() const) {
  std::vector<float> numbers(map_.count_of(ranks_.self()));
  std::span<float> rest{numbers};
  for (const training::StageShard& stage : work_->stages()) {
    const nn::ArrayView view = (stage.*what)();
    if (view.count > 0) math_->copy_out(view, rest.first(view.count));
    rest = rest.subspan(stage.held().count);
  }
  return numbers;
}

std::vector<training::WrongTensor> LayerSession::step_and_check(int iteration, double loss,
                                                                int count) {
  training::IterationNumbers numbers{iteration, loss, {}, {}};
  numbers.gradients =
      training::gather_numbers(ranks_.world(), pack(&training::StageShard::gradient));
  step(count);
  numbers.masters = training::gather_numbers(ranks_.world(), pack(&training::StageShard::master));
  if (!check_) return {};
  return check_->check(map_, numbers, count);
}

void LayerSession::note_bytes() {
  std::vector<int> counts;
  const auto bytes = ranks_.world().gather(std::as_bytes(std::span{work_->block_bytes()}), counts);
  const std::string all =
      ranks_.world().broadcast({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (std::size_t i = 0; i < measured_plan_.ops.size(); ++i) {
    Op& op = measured_plan_.ops[i];
    if (op.kind != OpKind::compute) continue;
    std::int64_t size = 0;
    std::memcpy(&size, all.data() + i * sizeof size, sizeof size);
    op.size = Bytes{size};
  }
}

LayerSession::State LayerSession::gather_state() {
  const auto whole = [&](nn::ArrayView (training::StageShard::*what)() const) {
    const auto of_rank = training::gather_numbers(ranks_.world(), pack(what));
    std::vector<float> numbers;
    if (ranks_.is_first()) numbers = training::assembled(map_, of_rank);
    training::broadcast_numbers(ranks_.world(), numbers);
    return numbers;
  };
  return {whole(&training::StageShard::master), whole(&training::StageShard::mean),
          whole(&training::StageShard::square)};
}

void LayerSession::set_state(const State& state) {
  for (training::StageShard& stage : work_->stages()) {
    const nn::ArrayView masters = stage.chunk().all_masters();
    const std::size_t first = map_.first_of(stage.stage());
    const training::ShardRange held = stage.held();
    math_->copy_in(std::span{state.masters}.subspan(first, masters.count), masters);
    stage.weights_from_masters();
    for (const auto& [numbers, view] :
         {std::pair{&state.means, stage.mean()}, std::pair{&state.squares, stage.square()}})
      if (view.count > 0)
        math_->copy_in(std::span{*numbers}.subspan(first + held.first, view.count), view);
  }
  math_->finish();
}

}  // namespace longhaul::harness
