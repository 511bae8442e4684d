#pragma once

#include <memory>

#include "engine/payloads/cargo.hpp"
#include "harness/session/real_run.hpp"

namespace longhaul::bench {

/// What computes a rank's blocks in a stretch of iterations, and what its messages carry.
class Computing {
public:
  /// Collective where `real` is given: it goes on with this schedule. nullptr: blocks of a device
  /// of this kind take their modelled time. All but `options` outlive this.
  Computing(Ranks& ranks, const PlannedSchedule& planned, const Scenario& scenario,
            const EngineOptions& options, DeviceKind kind, RealRun* real);

  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] Cargo& cargo() { return made_up_ ? *made_up_ : real_->cargo(); }
  /// nullptr: blocks are timed.
  [[nodiscard]] RealRun* real() { return real_; }
  /// What rows of measured iterations say of the plan.
  [[nodiscard]] const Plan& measured_plan() const {
    return real_ != nullptr ? real_->measured_plan() : planned_.plan;
  }

private:
  const PlannedSchedule& planned_;
  RealRun* real_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Cargo> made_up_;  ///< nullptr: the cargo is real
};

}  // namespace longhaul::bench
