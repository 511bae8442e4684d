#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "harness/session/training_session.hpp"
#include "training/layer_work.hpp"
#include "training/parameter_map.hpp"
#include "training/tensor_data_plane.hpp"

namespace longhaul::harness {

/// Real layers of the blocks of a schedule.
class LayerSession final : public TrainingSession {
public:
  LayerSession(engine::Ranks& ranks, const Scenario& scenario, const ComputeSettings& settings);
  ~LayerSession() override;

  void begin(const PlannedSchedule& planned, const Scenario& scenario,
             const std::optional<engine::Fault>& fault) override;
  [[nodiscard]] std::unique_ptr<engine::Device> make_device() override;
  [[nodiscard]] engine::DataPlane& data_plane() override { return *data_plane_; }
  /// The blocks, for a device that runs other work, too.
  [[nodiscard]] engine::BlockWork& work() { return *work_; }
  void begin_iteration(int iteration) override;
  [[nodiscard]] const Plan& measured_plan() const override { return measured_plan_; }

private:
  struct State;
  [[nodiscard]] State gather_state();
  void set_state(const State& state);
  [[nodiscard]] std::vector<float> pack(nn::ArrayView (training::StageShard::*what)() const);
  void complete() override { work_->end_iteration(); }
  [[nodiscard]] double loss() override { return work_->loss(); }
  void step(int step) override;
  void note_bytes() override;
  [[nodiscard]] std::vector<training::WrongTensor> step_and_check(int iteration, double loss,
                                                                  int count) override;
  [[nodiscard]] const Plan& plan() const override { return planned_->plan; }
  [[nodiscard]] Checked checked() const override { return {check_->checked(), check_->allowed()}; }

  const PlannedSchedule* planned_ = nullptr;
  std::optional<engine::Fault> fault_;
  std::unique_ptr<training::LayerWork> work_;
  std::unique_ptr<training::TensorDataPlane> data_plane_;
  training::ParameterMap map_;
  std::optional<training::GradientCheck> check_;  ///< on rank 0
  Plan measured_plan_;
};

}  // namespace longhaul::harness
