#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "runtime/clock.hpp"

namespace longhaul {

/// A block that has ended. `due` is when its work was over; noticing it took until now.
struct FinishedBlock {
  OpId op{};
  TimePoint due{};
};

/// The device cannot go on: `op` is the block with which it failed.
class DeviceError : public Error {
public:
  DeviceError(OpId op, const std::string& what) : Error{what, ExitCode::run_failed}, op_{op} {}
  [[nodiscard]] OpId op() const { return op_; }

private:
  OpId op_;
};

/// Computes the blocks of one rank, one at a time, behind the engine's back: no call blocks. What
/// the device reports as an error is thrown as DeviceError, and ends the run.
class Device {
public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual void begin_iteration(int /*iteration*/) {}
  /// Starts a block of `duration` that could have begun at `begin` (not later than now: as far as
  /// the engine was late to notice).
  virtual void start(OpId op, TimePoint begin, Duration duration) = 0;
  /// The block that has ended, if one has.
  [[nodiscard]] virtual std::optional<FinishedBlock> finished(TimePoint at) = 0;
  /// When to ask again at the latest; kNever when nothing runs or a doorbell will ring.
  [[nodiscard]] virtual TimePoint next_event() const = 0;
};

}  // namespace longhaul
