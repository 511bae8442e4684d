#include "device/failing_device.hpp"

#include <utility>

namespace longhaul::device {

FailingDevice::FailingDevice(std::unique_ptr<engine::Device> device, const Plan& plan, Rank self,
                             const engine::Fault& fault)
    : device_{std::move(device)}, plan_{plan}, self_{self}, fault_{fault} {}

void FailingDevice::begin_iteration(int iteration) {
  device_->begin_iteration(iteration);
  fault_op_ = engine::find_fault_op(fault_, plan_, self_, iteration);
}

void FailingDevice::start(OpId op, TimePoint begin, Duration duration) {
  device_->start(op, begin, duration);
}

std::optional<engine::FinishedBlock> FailingDevice::finished(TimePoint at) {
  auto done = device_->finished(at);
  broken_ = broken_ || (done && done->op == fault_op_);
  if (done && broken_)
    throw engine::DeviceError{done->op,
                              "error 719, unspecified launch failure (injected; it sticks: no "
                              "further call on this device succeeds)"};
  return done;
}

}  // namespace longhaul::device
