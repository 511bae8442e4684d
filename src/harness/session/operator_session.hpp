#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/group/communicator.hpp"
#include "harness/session/training_session.hpp"
#include "training/operators/operator_check.hpp"
#include "training/operators/operator_data_plane.hpp"

namespace longhaul::harness {

/// Real layers, operator by operator, of an iteration under an overlap: tensor and sequence
/// parallelism, sharded weights, replicas. One plan for all iterations.
class OperatorSession final : public TrainingSession {
public:
  OperatorSession(engine::Ranks& ranks, const Scenario& scenario, const ComputeSettings& settings);

  void begin(const PlannedSchedule& planned, const Scenario& scenario,
             const std::optional<engine::Fault>& fault) override;
  [[nodiscard]] std::unique_ptr<engine::Device> make_device() override;
  [[nodiscard]] engine::DataPlane& data_plane() override { return *data_plane_; }
  void begin_iteration(int iteration) override;
  [[nodiscard]] const Plan& measured_plan() const override { return planned_->plan; }

private:
  void sum_over_tensor_ranks();
  void complete() override;
  [[nodiscard]] double loss() override;
  void step(int step) override { work_->weights().step(step); }
  [[nodiscard]] std::vector<training::WrongTensor> step_and_check(int iteration, double loss,
                                                                  int count) override;
  [[nodiscard]] const Plan& plan() const override { return planned_->plan; }
  [[nodiscard]] Checked checked() const override { return {check_->checked(), check_->allowed()}; }

  const PlannedSchedule* planned_ = nullptr;
  std::optional<engine::Fault> fault_;
  std::unique_ptr<training::OperatorWork> work_;
  std::unique_ptr<training::OperatorDataPlane> data_plane_;
  std::optional<comm::Communicator> tensor_ranks_;       ///< absent: each holds what is its own
  std::vector<std::vector<training::ShardRange>> held_;  ///< by rank; on rank 0
  std::optional<training::OperatorCheck> check_;         ///< on rank 0
};

}  // namespace longhaul::harness
