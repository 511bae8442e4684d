#include "device/cpu/timed_device.hpp"

#include "base/error.hpp"

namespace longhaul::device {

void TimedDevice::start(OpId op, TimePoint begin, Duration duration) {
  LONGHAUL_ASSERT(!running_, "op {} starts while op {} runs", index(op), index(running_->op));
  running_ = engine::FinishedBlock{op, begin + duration};
}

std::optional<engine::FinishedBlock> TimedDevice::finished(TimePoint at) {
  if (!running_ || at < running_->due) return std::nullopt;
  const engine::FinishedBlock done = *running_;
  running_.reset();
  return done;
}

}  // namespace longhaul::device
