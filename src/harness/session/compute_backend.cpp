#include "harness/session/compute_backend.hpp"

#include "device/failing_device.hpp"

namespace longhaul::harness {

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
