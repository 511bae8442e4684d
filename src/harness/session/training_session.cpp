#include "harness/session/training_session.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"
#include "device/failing_device.hpp"
#include "harness/session/check_report.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/layers/weights.hpp"
#include "scenario/model_costs.hpp"
#include "training/model_layout.hpp"

namespace longhaul::harness {
namespace {

/// The reference of one iteration computes for about a second on a core.
constexpr double kSmallModel = 1e10;  // floating-point operations
/// While rank 0 computes what all others have computed together.
constexpr Duration kReferencePatience = std::chrono::hours{2};
/// Lines about wrong tensors that are kept: more say nothing more.
constexpr std::size_t kNamedProblems = 16;

training::TrainingModel model_of(const Scenario& scenario, const ComputeSettings& settings) {
  training::TrainingModel model;
  model.shape = training::model_shape(scenario);
  model.seed = scenario.run.seed;
  model.optimizer = settings.optimizer;
  model.text = nn::SyntheticText{model.shape, scenario.run.seed};
  return model;
}

/// 6 operations for each weight and token (F, D, W).
double operations(const Scenario& scenario) {
  const Model& model = *scenario.model;
  const double tokens = static_cast<double>(model.sequence_length) * model.microbatch_size *
                        scenario.parallel.microbatches * scenario.parallel.replicas;
  return 6 * tokens * static_cast<double>(scenario::model_parameters(model));
}

bool checks_all(const Scenario& scenario, GradientChecks checks) {
  return checks == GradientChecks::all ||
         (checks == GradientChecks::by_size && operations(scenario) <= kSmallModel);
}

std::size_t budget_of(const Scenario& scenario, Rank self) {
  const auto device = static_cast<std::size_t>(static_cast<int>(self) % scenario.parallel.stages);
  const auto& capacities = scenario.memory.capacity;
  if (device >= capacities.size() || !capacities[device]) return 0;
  return static_cast<std::size_t>(capacities[device]->count());
}

}  // namespace

/// All that survives a change of schedules, of the whole model; on every rank.
struct TrainingSession::State {
  std::vector<float> masters, means, squares;
};

TrainingSession::TrainingSession(engine::Ranks& ranks, const Scenario& scenario,
                                 const ComputeSettings& settings)
    : ranks_{ranks},
      settings_{settings},
      model_{model_of(scenario, settings)},
      checks_all_{checks_all(scenario, settings.checks)},
      math_{make_tensor_ops(settings.device, ranks)},
      step_math_{make_tensor_ops(settings.device, ranks)},
      memory_{*math_, budget_of(scenario, ranks.self())},
      step_memory_{*step_math_, 0} {
  if (!ranks.is_first() || settings.checks == GradientChecks::off) return;
  const Parallel& parallel = scenario.parallel;
  const auto reference = [&](std::unique_ptr<nn::TensorOps> math) {
    return std::make_unique<training::WholeModel>(std::move(math), model_, parallel.microbatches,
                                                  parallel.replicas);
  };
  const bool needs_cpu_reference =
      math_->working_type() != NumberType::f32 && operations(scenario) <= kSmallModel;
  check_.emplace(reference(make_tensor_ops(settings.device, ranks)),
                 needs_cpu_reference ? reference(nn::make_cpu_math()) : nullptr);
}

TrainingSession::~TrainingSession() = default;

void TrainingSession::begin(const PlannedSchedule& planned, const Scenario& scenario,
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

std::unique_ptr<engine::Device> TrainingSession::make_device() {
  return make_layer_device(settings_.device, ranks_, *work_, *math_);
}

void TrainingSession::begin_iteration(int iteration) {
  if (fault_ && fault_->kind == engine::FaultKind::perturb && fault_->rank == ranks_.self() &&
      fault_->iteration == iteration)
    work_->stages().front().perturb();
  work_->begin_iteration(iteration);
}

void TrainingSession::end_iteration(int iteration, engine::Checks& checks) {
  work_->end_iteration();
  const double mine = work_->loss();
  std::vector<int> counts;
  const auto bytes = ranks_.world().gather(std::as_bytes(std::span{&mine, std::size_t{1}}), counts);
  double loss = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(double)) {
    double part = 0;
    std::memcpy(&part, bytes.data() + at, sizeof part);
    loss += part;
  }
  if (iteration >= 0) outcome_.losses.push_back(loss);
  note_bytes();
  if (is_checked()) {
    check(iteration, loss, checks);
  } else {
    step();
  }
  math_->finish();
}

void TrainingSession::step() {
  ++steps_;
  for (training::StageShard& stage : work_->stages()) stage.step(steps_);
}

bool TrainingSession::is_checked() const {
  return settings_.checks != GradientChecks::off && (checks_all_ || steps_ == 0);
}

/// The numbers that the rank holds, as its stages return them.
std::vector<float> TrainingSession::pack(nn::ArrayView (training::StageShard::*what)() const) {
  std::vector<float> numbers(map_.count_of(ranks_.self()));
  std::span<float> rest{numbers};
  for (const training::StageShard& stage : work_->stages()) {
    const nn::ArrayView view = (stage.*what)();
    if (view.count > 0) math_->copy_out(view, rest.first(view.count));
    rest = rest.subspan(stage.held().count);
  }
  return numbers;
}

void TrainingSession::check(int iteration, double loss, engine::Checks& checks) {
  training::IterationNumbers numbers{iteration, loss, {}, {}};
  numbers.gradients =
      training::gather_numbers(ranks_.world(), pack(&training::StageShard::gradient));
  step();
  numbers.masters = training::gather_numbers(ranks_.world(), pack(&training::StageShard::master));
  const Duration patience = ranks_.watchdog().patience();
  ranks_.watchdog().set_patience(kReferencePatience);
  if (check_) {
    const std::vector<training::WrongTensor> wrong = check_->check(map_, numbers, steps_);
    checks.wrong_tensors += std::ssize(wrong);
    for (const std::string& line : lines_of(planned_->plan, iteration, wrong))
      if (outcome_.wrong.size() < kNamedProblems) outcome_.wrong.push_back(line);
  }
  ranks_.world().barrier();
  ranks_.watchdog().set_patience(patience);
}

void TrainingSession::note_bytes() {
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

TrainingSession::State TrainingSession::gather_state() {
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

void TrainingSession::set_state(const State& state) {
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

TrainingOutcome TrainingSession::finish() {
  for (const std::int64_t peak :
       ranks_.world().all_gather(static_cast<std::int64_t>(memory_.peak())))
    outcome_.peak_bytes.push_back(peak);
  if (check_) {
    outcome_.checked = check_->checked() - std::exchange(checked_before_, check_->checked());
    outcome_.allowed = check_->allowed();
  }
  return std::exchange(outcome_, {});
}

void check_real_input(const PipelineInput& input) {
  if (!input.compute.real) return;
  const nn::ModelShape shape = training::model_shape(input.scenario);
  for (const PlannedSchedule& planned : input.schedules)
    for (const nn::LayerRange& layers :
         training::layers_of_stages(planned.schedule, input.scenario))
      nn::check_layers(shape, layers);
  if (input.scenario.model->tensor_parallel > 1)
    fail(
        "model.tensor_parallel = {} (a device of real layers is one rank, which computes all of "
        "them). Write --set model.tensor_parallel=1.",
        input.scenario.model->tensor_parallel);
  const Parallel& parallel = input.scenario.parallel;
  if (input.scenario.has_uneven_replicas())
    fail(
        "the replicas have different costs or microbatches (real layers check their gradients "
        "against equal ones). Give all the same.");
  if (parallel.tensor > 1)
    fail(
        "parallel.tensor = {} (a stage of real layers is one rank, which computes all of it). "
        "Write --set parallel.tensor=1.",
        parallel.tensor);
  if (parallel.shard > 1 && parallel.shard < parallel.replicas)
    fail(
        "parallel.shard = {} of {} replicas (real layers have their weights whole, or sharded over "
        "all replicas). Write --set parallel.shard={}.",
        parallel.shard, parallel.replicas, parallel.replicas);
  if (!input.scenario.services.empty())
    fail("[[service]] ranks beside real layers (they have none). Leave --compute real out.");
  if (parallel.replicas > 1 && parallel.gradient_sync == GradientSync::none)
    fail(
        "parallel.gradient_sync is \"none\" with {} replicas (each would train a model of its "
        "own). Write gradient_sync = \"all-reduce\" or \"zero1\".",
        parallel.replicas);
}

ComputeBackend::ComputeBackend(engine::Ranks& ranks, const PlannedSchedule& planned,
                               const Scenario& scenario, const engine::EngineOptions& options,
                               DeviceKind kind, TrainingSession* real)
    : planned_{planned}, real_{real} {
  const Plan& plan = planned.plan;
  if (real != nullptr) {
    real->begin(planned, scenario, options.fault);
    device_ = real->make_device();
  } else {
    device_ = make_timed_device(kind, ranks, options.credit);
    synthetic_ = make_data_plane(kind, ranks, plan, options);
  }
  if (options.fault && options.fault->kind == engine::FaultKind::device)
    device_ = std::make_unique<device::FailingDevice>(std::move(device_), plan, ranks.self(),
                                                      *options.fault);
}

}  // namespace longhaul::harness
