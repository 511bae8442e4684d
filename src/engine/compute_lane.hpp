#pragma once

#include <deque>

#include "engine/device.hpp"
#include "engine/engine_state.hpp"

namespace longhaul::engine {

/// This rank's blocks, in order, one after the other on its device. A device that takes several
/// gets the next one while one runs, as soon as what it waits for is there, or lies before it
/// on the device, or comes at a known time (the rest of a message's latency): the device waits for
/// that itself. What is recorded then are its stamps.
class ComputeLane {
public:
  ComputeLane(EngineState& state, Device& device);
  void begin_iteration();

  /// Notes what has ended and starts what can start; true if anything moved.
  bool advance(TimePoint at);
  /// The block that runs; none when the device is free.
  [[nodiscard]] OpId running() const { return given_.empty() ? kNone<OpId> : given_.front().op; }
  /// The next block to start; none when all have.
  [[nodiscard]] OpId next() const { return next_ == end_ ? kNone<OpId> : OpId{next_}; }

private:
  struct QueuedBlock {
    OpId op{};
    TimePoint at{};
  };
  bool finish(const FinishedBlock& block, TimePoint at);
  [[nodiscard]] bool can_start(OpId block) const;
  void start(OpId block, TimePoint at);
  [[nodiscard]] TimePoint begin_of(OpId block, const Cause& cause, TimePoint at,
                                   Duration duration) const;
  void count_credit(const FinishedBlock& block, TimePoint given, TimePoint seen);

  EngineState& state_;
  Device& device_;
  std::size_t depth_;
  std::uint32_t first_ = 0, next_ = 0, end_ = 0;  ///< op ids
  std::deque<QueuedBlock> given_;                 ///< to the device, and not finished
  std::optional<FinishedBlock> early_;  ///< finished before this rank noticed what it waited for
  Cause free_;                          ///< when the device became free
  ShadowTime free_seen_;                ///< the same as it was seen, with and without credit
};

}  // namespace longhaul::engine
