#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/payloads/data_plane.hpp"
#include "harness/options/compute_options.hpp"
#include "harness/session/pipeline_input.hpp"
#include "nn/memory.hpp"
#include "training/gradient_check.hpp"

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
  virtual ~TrainingSession() = default;
  TrainingSession(const TrainingSession&) = delete;
  TrainingSession& operator=(const TrainingSession&) = delete;

  /// Goes on with this schedule: weights are those of the segment before, wherever they were.
  /// `planned` and `scenario` live until the next begin().
  virtual void begin(const PlannedSchedule& planned, const Scenario& scenario,
                     const std::optional<engine::Fault>& fault) = 0;
  [[nodiscard]] virtual std::unique_ptr<engine::Device> make_device() = 0;
  [[nodiscard]] virtual engine::DataPlane& data_plane() = 0;

  virtual void begin_iteration(int iteration) = 0;
  /// Call after the iteration; not part of its time. Steps the optimizer, and compares the computed
  /// numbers with one rank's. Adds wrong ones to `checks` of rank 0.
  void end_iteration(int iteration, engine::Checks& checks);
  /// The plan, its blocks with the bytes that they took in the last iteration.
  [[nodiscard]] virtual const Plan& measured_plan() const = 0;
  [[nodiscard]] TrainingOutcome finish();

protected:
  TrainingSession(engine::Ranks& ranks, const Scenario& scenario, const ComputeSettings& settings);

  /// On rank 0, where anything is checked.
  [[nodiscard]] std::unique_ptr<training::WholeModel> make_reference(
      std::unique_ptr<nn::TensorOps> math, const Scenario& scenario) const;
  [[nodiscard]] bool makes_reference() const {
    return ranks_.is_first() && settings_.checks != GradientChecks::off;
  }

  /// After the last op, before the loss is asked for.
  virtual void complete() = 0;
  /// This rank's part of it.
  [[nodiscard]] virtual double loss() = 0;
  virtual void step(int step) = 0;
  /// After the loss is known.
  virtual void note_bytes() {}
  /// Gathers what was computed, steps, and compares on rank 0: what is wrong.
  [[nodiscard]] virtual std::vector<training::WrongTensor> step_and_check(int iteration,
                                                                          double loss,
                                                                          int step) = 0;
  [[nodiscard]] virtual const Plan& plan() const = 0;
  struct Checked {
    int iterations = 0;
    double allowed = 0;
  };
  /// On rank 0, where anything is checked; no iterations elsewhere.
  [[nodiscard]] virtual Checked checked() const = 0;

  engine::Ranks& ranks_;
  ComputeSettings settings_;
  training::TrainingModel model_;
  std::unique_ptr<nn::TensorOps> math_, step_math_;
  nn::DeviceMemory memory_;
  nn::DeviceMemory step_memory_;  ///< of messages of collectives

private:
  [[nodiscard]] bool is_checked() const;

  bool checks_all_;
  int checked_before_ = 0;  ///< iterations of segments before
  int steps_ = 0;           ///< of the optimizer
  TrainingOutcome outcome_;
};

/// Layers of blocks, or operators where the schedule is played under an overlap.
[[nodiscard]] std::unique_ptr<TrainingSession> make_training_session(
    engine::Ranks& ranks, const PlannedSchedule& planned, const Scenario& scenario,
    const ComputeSettings& settings);

/// The reference of one iteration computes for about a second on a core at most.
[[nodiscard]] bool is_small_model(const Scenario& scenario);

/// Does the fault change a weight of that rank before that iteration?
[[nodiscard]] bool perturbs(const std::optional<engine::Fault>& fault, Rank self, int iteration);

/// Throws Error where the schedules of the input cannot be computed: says what to change.
void check_real_input(const PipelineInput& input);
/// The same of one schedule, without an overlap.
void check_real_schedule(const Scenario& scenario, const Schedule& schedule);

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
