#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/vocabulary.hpp"
#include "plan/extras/extras.hpp"

namespace longhaul::engine {

/// A block that has ended. `due` is when its work was over; noticing it took until now. `start`,
/// where the device stamps its blocks: when its work began, and then `due` is a stamp too. `begin`,
/// where its time is a planned one: from when that was counted.
struct FinishedBlock {
  OpId op{};
  TimePoint due{};
  TimePoint start = kNever;
  TimePoint begin = kNever;
};

/// The device cannot go on: `op` is the block with which it failed.
class DeviceError : public Error {
public:
  DeviceError(OpId op, const std::string& what) : Error{what, ExitCode::run_failed}, op_{op} {}
  [[nodiscard]] OpId op() const { return op_; }

private:
  OpId op_;
};

/// Computes the blocks of one rank, one after the other, beside the engine: no call blocks.
/// An error that the device reports is thrown as DeviceError, and ends the run. For example, one
/// block until its end:
///     device.start(block, now(), plan.op(block).duration);
///     for (bool over = false; !over;) {
///       const std::uint32_t seen = host_ranks.doorbell();
///       over = device.finished(now()).has_value();
///       if (!over) host_ranks.sleep(seen, device.next_event());
///     }
class Device {
public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Before the ranks meet for it: may take its time.
  virtual void begin_iteration(int /*iteration*/) {}
  /// Number of unfinished blocks that it accepts. Above 1 it keeps them in order and stamps them;
  /// the engine then hands over the next one while one runs, and need not be quick.
  [[nodiscard]] virtual int depth() const { return 1; }
  /// May it be given blocks of several lanes of its rank, which it runs beside each other?
  [[nodiscard]] virtual bool runs_several() const { return false; }
  /// From now on its blocks slow beside messages, by `overlap`. False: it cannot do that.
  [[nodiscard]] virtual bool slow_by(const plan::Overlap& overlap) { return overlap.none(); }
  /// A message of that level holds the rank from `from` to before `to`: told when that is known,
  /// so mostly ahead.
  virtual void message_holds(NetworkLevel /*level*/, TimePoint /*from*/, TimePoint /*to*/) {}

  /// The version that `op`, which is started next, meets: of its weak dependency (FarDependency).
  /// Not told under a virtual clock, where it is known at the end of the instant.
  virtual void meets(OpId /*op*/, int /*version*/) {}
  /// Starts a block of `duration` that could have begun at `begin`, as far as the engine was late
  /// to notice. A device that takes several also gets blocks that may not begin before `begin`,
  /// which is then later than now: the device waits itself.
  virtual void start(OpId op, TimePoint begin, Duration duration) = 0;
  /// The first block that has ended and was not told yet, if one has.
  [[nodiscard]] virtual std::optional<FinishedBlock> finished(TimePoint at) = 0;
  /// When to ask again at the latest; kNever when nothing runs or a doorbell will ring.
  [[nodiscard]] virtual TimePoint next_event() const = 0;
  /// Something may end at any time, and only looking tells: again after so long. 0: no need.
  [[nodiscard]] virtual Duration poll_interval() const { return Duration::zero(); }
};

/// The work of a rank's blocks and host tasks in a stream. Blocks come one after the other in the
/// order of their lane; tasks of other lanes run beside them and each other.
class StreamWork {
public:
  StreamWork() = default;
  virtual ~StreamWork() = default;
  StreamWork(const StreamWork&) = delete;
  StreamWork& operator=(const StreamWork&) = delete;

  /// Computes `op` of `iteration`, counted from 0 in each stream; its effects are in place when it
  /// returns. `version`: see Device::meets(); -1 of an op that meets none. Throws Error where it
  /// cannot go on.
  virtual void run(OpId op, int iteration, int version) = 0;
};

/// The math of a rank's real blocks, apart from where and when a device runs it. One caller at a
/// time; blocks in the order of the rank's compute lane.
class BlockWork {
public:
  BlockWork() = default;
  virtual ~BlockWork() = default;
  BlockWork(const BlockWork&) = delete;
  BlockWork& operator=(const BlockWork&) = delete;

  /// Hands the block's calls to TensorOps, on which they take effect in turn: before this returns
  /// (CPU) or some time later (CUDA). Throws Error where the block cannot go on (out of memory).
  virtual void run(OpId block) = 0;
  /// The calls of `block` have taken effect: its inputs may be used again. Called before the engine
  /// hears of its end.
  virtual void ended(OpId block) = 0;
};

}  // namespace longhaul::engine
