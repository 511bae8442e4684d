#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/payloads/data_plane.hpp"
#include "harness/options/compute_options.hpp"
#include "harness/session/pipeline_input.hpp"
#include "training/gradient_check.hpp"
#include "training/layer_work.hpp"
#include "training/tensor_data_plane.hpp"

namespace longhaul::harness {

/// Results of real layers in a run segment; on rank 0.
struct TrainingOutcome {
  std::vector<double> losses;            ///< of each measured iteration
  int checked = 0;                       ///< iterations, warm-up included
  double allowed = 0;                    ///< relative difference; 0 where none was checked
  std::vector<std::string> wrong;        ///< the first few that `Checks::wrong_tensors` counts
  std::vector<std::int64_t> peak_bytes;  ///< of its device's memory, of each rank
};

/// Real layers of one schedule through all of its iterations: what this rank computes with, its
/// weights (which outlive a switch of schedules), and the check against one rank. Every call is
/// collective.
class TrainingSession {
public:
  TrainingSession(engine::Ranks& ranks, const Scenario& scenario, const ComputeSettings& settings);
  ~TrainingSession();
  TrainingSession(const TrainingSession&) = delete;
  TrainingSession& operator=(const TrainingSession&) = delete;

  /// Goes on with this schedule: weights are those of the segment before, wherever they were.
  /// `planned` and `scenario` live until the next begin().
  void begin(const PlannedSchedule& planned, const Scenario& scenario,
             const std::optional<engine::Fault>& fault);
  [[nodiscard]] std::unique_ptr<engine::Device> make_device();
  [[nodiscard]] engine::DataPlane& data_plane() { return *data_plane_; }

  void begin_iteration(int iteration);
  /// Call after the iteration; not part of its time. Steps the optimizer, and compares the computed
  /// numbers with one rank's. Adds wrong ones to `checks` of rank 0.
  void end_iteration(int iteration, engine::Checks& checks);
  /// The plan, its blocks with the bytes that they took in the last iteration.
  [[nodiscard]] const Plan& measured_plan() const { return measured_plan_; }
  [[nodiscard]] TrainingOutcome finish();

private:
  struct State;
  [[nodiscard]] State gather_state();
  void set_state(const State& state);
  [[nodiscard]] std::vector<float> pack(nn::ArrayView (training::StageShard::*what)() const);
  void step();
  [[nodiscard]] bool is_checked() const;
  void check(int iteration, double loss, engine::Checks& checks);
  void note_bytes();

  engine::Ranks& ranks_;
  ComputeSettings settings_;
  training::TrainingModel model_;
  bool checks_all_;
  std::unique_ptr<nn::TensorOps> math_, step_math_;
  nn::DeviceMemory memory_;
  nn::DeviceMemory step_memory_;  ///< of messages of collectives
  const PlannedSchedule* planned_ = nullptr;
  std::optional<engine::Fault> fault_;
  std::unique_ptr<training::LayerWork> work_;
  std::unique_ptr<training::TensorDataPlane> data_plane_;
  training::ParameterMap map_;
  std::optional<training::GradientCheck> check_;  ///< on rank 0
  int checked_before_ = 0;                        ///< iterations of segments before
  int steps_ = 0;                                 ///< of the optimizer
  Plan measured_plan_;
  TrainingOutcome outcome_;
};

/// Throws Error where the schedules of the input cannot be computed: says what to change.
void check_real_input(const PipelineInput& input);

/// The device that computes a rank's blocks in a run segment, and the data plane of its messages.
class ComputeBackend {
public:
  /// Collective where `real` is given: it goes on with this schedule. nullptr: blocks of a device
  /// of this kind take their modelled time. All but `options` outlive this.
  ComputeBackend(engine::Ranks& ranks, const PlannedSchedule& planned, const Scenario& scenario,
                 const engine::EngineOptions& options, DeviceKind kind, TrainingSession* real);

  [[nodiscard]] engine::Device& device() { return *device_; }
  [[nodiscard]] engine::DataPlane& data_plane() {
    return synthetic_ ? *synthetic_ : real_->data_plane();
  }
  /// nullptr: blocks are timed.
  [[nodiscard]] TrainingSession* real() { return real_; }
  /// The plan that rows of measured iterations name.
  [[nodiscard]] const Plan& measured_plan() const {
    return real_ != nullptr ? real_->measured_plan() : planned_.plan;
  }

private:
  const PlannedSchedule& planned_;
  TrainingSession* real_;
  std::unique_ptr<engine::Device> device_;
  std::unique_ptr<engine::DataPlane> synthetic_;  ///< nullptr: the data plane is real
};

}  // namespace longhaul::harness
