#pragma once

#include "engine/device.hpp"

namespace longhaul::device {

/// Blocks that take their modelled time and no processor: the engine sleeps until they are over.
class TimedDevice final : public engine::Device {
public:
  void start(OpId op, TimePoint begin, Duration duration) override;
  [[nodiscard]] std::optional<engine::FinishedBlock> finished(TimePoint at) override;
  [[nodiscard]] TimePoint next_event() const override { return running_ ? running_->due : kNever; }

private:
  std::optional<engine::FinishedBlock> running_;
};

}  // namespace longhaul::device
