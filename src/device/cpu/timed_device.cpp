#include "device/cpu/timed_device.hpp"

#include "base/error.hpp"

namespace longhaul {

void TimedDevice::start(OpId op, TimePoint begin, Duration duration) {
  LONGHAUL_ASSERT(!running_, "op {} starts while op {} runs", index(op), index(running_->op));
  running_ = FinishedBlock{op, begin + duration};
}

std::optional<FinishedBlock> TimedDevice::finished(TimePoint at) {
  if (!running_ || at < running_->due) return std::nullopt;
  const FinishedBlock done = *running_;
  running_.reset();
  return done;
}

}  // namespace longhaul
