#pragma once

#include <optional>

#include "base/ids.hpp"
#include "runtime/clock.hpp"

namespace longhaul {

/// A block that has ended. `due` is when its work was over; noticing it took until now.
struct FinishedBlock {
  OpId op{};
  TimePoint due{};
};

/// Computes the blocks of one rank, one at a time, behind the engine's back: neither call blocks.
class Device {
public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Starts a block of `duration` that could have begun at `begin` (not later than now: as far as
  /// the engine was late to notice).
  virtual void start(OpId op, TimePoint begin, Duration duration) = 0;
  /// The block that has ended, if one has.
  [[nodiscard]] virtual std::optional<FinishedBlock> finished(TimePoint at) = 0;
  /// When to ask again at the latest; kNever when nothing runs or a doorbell will ring.
  [[nodiscard]] virtual TimePoint next_event() const = 0;
};

}  // namespace longhaul
