#pragma once

#include "runtime/device/device.hpp"
#include "runtime/engine/core.hpp"

namespace longhaul {

/// This rank's blocks, in order, one at a time on its device.
class ComputeSide {
public:
  ComputeSide(Core& core, Device& device);
  void begin_iteration();

  /// Notes what has ended and starts what can start; true if anything moved.
  bool advance(TimePoint at);
  /// The block that runs; none when the device is free.
  [[nodiscard]] OpId running() const { return busy_ ? OpId{next_ - 1} : kNone<OpId>; }
  /// The next block to start; none when all have.
  [[nodiscard]] OpId next() const { return next_ == end_ ? kNone<OpId> : OpId{next_}; }

private:
  void start(OpId block, TimePoint at);

  Core& core_;
  Device& device_;
  std::uint32_t first_ = 0, next_ = 0, end_ = 0;  ///< op ids
  bool busy_ = false;
  Cause free_;  ///< when the device became free
};

}  // namespace longhaul
