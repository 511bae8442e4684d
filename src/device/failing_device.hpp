#pragma once

#include <optional>

#include "engine/device.hpp"
#include "engine/payloads/fault.hpp"
#include "plan/plan.hpp"

namespace longhaul::device {

/// A device on which one block fails, and everything after it: as a CUDA error sticks to its
/// context. For tests; what a real device reports takes the same way.
class FailingDevice final : public engine::Device {
public:
  /// `fault` is of kind device; `plan` outlives this.
  FailingDevice(std::unique_ptr<engine::Device> device, const Plan& plan, Rank self,
                const engine::Fault& fault);

  void begin_iteration(int iteration) override;
  [[nodiscard]] int depth() const override { return device_->depth(); }
  void start(OpId op, TimePoint begin, Duration duration) override;
  [[nodiscard]] std::optional<engine::FinishedBlock> finished(TimePoint at) override;
  [[nodiscard]] TimePoint next_event() const override { return device_->next_event(); }
  [[nodiscard]] Duration poll_interval() const override { return device_->poll_interval(); }

private:
  std::unique_ptr<engine::Device> device_;
  const Plan& plan_;
  Rank self_;
  std::optional<engine::Fault> fault_;
  std::optional<OpId> fault_op_;  ///< in this iteration
  bool broken_ = false;           ///< the failing block has ended
};

}  // namespace longhaul::device
