#pragma once

#include <memory>

#include "engine/payloads/data_plane.hpp"
#include "harness/session/training_session.hpp"

namespace longhaul::harness {

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
