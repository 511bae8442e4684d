#pragma once

#include <memory>

#include "engine/payloads/data_plane.hpp"
#include "harness/session/training_session.hpp"

namespace longhaul::bench {

/// What computes a rank's blocks in a stretch of iterations, and what its messages carry.
class ComputeBackend {
public:
  /// Collective where `real` is given: it goes on with this schedule. nullptr: blocks of a device
  /// of this kind take their modelled time. All but `options` outlive this.
  ComputeBackend(Ranks& ranks, const PlannedSchedule& planned, const Scenario& scenario,
                 const EngineOptions& options, DeviceKind kind, TrainingSession* real);

  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] DataPlane& data_plane() { return made_up_ ? *made_up_ : real_->data_plane(); }
  /// nullptr: blocks are timed.
  [[nodiscard]] TrainingSession* real() { return real_; }
  /// What rows of measured iterations say of the plan.
  [[nodiscard]] const Plan& measured_plan() const {
    return real_ != nullptr ? real_->measured_plan() : planned_.plan;
  }

private:
  const PlannedSchedule& planned_;
  TrainingSession* real_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<DataPlane> made_up_;  ///< nullptr: the data plane is real
};

}  // namespace longhaul::bench
