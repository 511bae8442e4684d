#include "harness/session/training_session.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/failing_device.hpp"
#include "harness/session/check_report.hpp"
#include "harness/session/layer_session.hpp"
#include "harness/session/operator_session.hpp"
#include "nn/layers/text.hpp"
#include "scenario/model_costs.hpp"
#include "training/model_layout.hpp"

namespace longhaul::harness {
namespace {

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
  // Numbered over all replicas: a replica alone with as many microbatches reads the same.
  model.text = [text = nn::SyntheticText{model.shape, scenario.run.seed},
                count = scenario.parallel.microbatches](int iteration, ReplicaId replica,
                                                        MicrobatchId microbatch) {
    return text(iteration, ReplicaId{0},
                MicrobatchId{number(replica) * count + number(microbatch)});
  };
  return model;
}

bool checks_all(const Scenario& scenario, GradientChecks checks) {
  return checks == GradientChecks::all ||
         (checks == GradientChecks::by_size && is_small_model(scenario));
}

std::size_t budget_of(const Scenario& scenario, Rank self) {
  const std::size_t device = index(scenario.place_of(self).stage);
  const auto& capacities = scenario.memory.capacity;
  if (device >= capacities.size() || !capacities[device]) return 0;
  return static_cast<std::size_t>(capacities[device]->count());
}

/// On rank 0.
double sum_of_parts(const comm::Communicator& world, double mine) {
  std::vector<int> counts;
  const auto bytes = world.gather(std::as_bytes(std::span{&mine, std::size_t{1}}), counts);
  double sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(double)) {
    double part = 0;
    std::memcpy(&part, bytes.data() + at, sizeof part);
    sum += part;
  }
  return sum;
}

}  // namespace

/// 6 operations for each weight and token (F, D, W).
bool is_small_model(const Scenario& scenario) {
  const Model& model = *scenario.model;
  const double tokens = static_cast<double>(model.sequence_length) * model.microbatch_size *
                        scenario.parallel.microbatches * scenario.parallel.replicas;
  return 6 * tokens * static_cast<double>(scenario::model_parameters(model)) <= kSmallModel;
}

bool perturbs(const std::optional<engine::Fault>& fault, Rank self, int iteration) {
  return fault && fault->kind == engine::FaultKind::perturb && fault->rank == self &&
         fault->iteration == iteration;
}

TrainingSession::TrainingSession(engine::Ranks& ranks, const Scenario& scenario,
                                 const ComputeSettings& settings)
    : ranks_{ranks},
      settings_{settings},
      model_{model_of(scenario, settings)},
      math_{make_tensor_ops(settings.device, ranks)},
      step_math_{make_tensor_ops(settings.device, ranks)},
      memory_{*math_, budget_of(scenario, ranks.self())},
      step_memory_{*step_math_, 0},
      checks_all_{checks_all(scenario, settings.checks)} {}

std::unique_ptr<training::WholeModel> TrainingSession::make_reference(
    std::unique_ptr<nn::TensorOps> math, const Scenario& scenario) const {
  return std::make_unique<training::WholeModel>(
      std::move(math), model_, scenario.parallel.microbatches, scenario.parallel.replicas);
}

bool TrainingSession::is_checked() const {
  return settings_.checks != GradientChecks::off && (checks_all_ || steps_ == 0);
}

void TrainingSession::end_iteration(int iteration, engine::Checks& checks) {
  complete();
  const double whole = sum_of_parts(ranks_.world(), loss());
  if (iteration >= 0) outcome_.losses.push_back(whole);
  note_bytes();
  const bool compares = is_checked();
  ++steps_;
  if (!compares) {
    step(steps_);
    math_->finish();
    return;
  }
  const Duration patience = ranks_.watchdog().patience();
  ranks_.watchdog().set_patience(kReferencePatience);
  const std::vector<training::WrongTensor> wrong = step_and_check(iteration, whole, steps_);
  checks.wrong_tensors += std::ssize(wrong);
  for (const std::string& line : lines_of(plan(), iteration, wrong))
    if (outcome_.wrong.size() < kNamedProblems) outcome_.wrong.push_back(line);
  ranks_.world().barrier();
  ranks_.watchdog().set_patience(patience);
  math_->finish();
}

TrainingOutcome TrainingSession::finish() {
  for (const std::int64_t peak :
       ranks_.world().all_gather(static_cast<std::int64_t>(memory_.peak())))
    outcome_.peak_bytes.push_back(peak);
  if (makes_reference()) {
    const Checked now = checked();
    outcome_.checked = now.iterations - std::exchange(checked_before_, now.iterations);
    outcome_.allowed = now.allowed;
  }
  return std::exchange(outcome_, {});
}

std::unique_ptr<TrainingSession> make_training_session(engine::Ranks& ranks,
                                                       const PlannedSchedule& planned,
                                                       const Scenario& scenario,
                                                       const ComputeSettings& settings) {
  if (planned.overlap) return std::make_unique<OperatorSession>(ranks, scenario, settings);
  return std::make_unique<LayerSession>(ranks, scenario, settings);
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
