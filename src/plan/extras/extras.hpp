#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "base/vocabulary.hpp"
#include "plan/extras/op_source.hpp"

namespace longhaul::plan {

inline constexpr Duration kNoDeadline = Duration::max();

/// An op with a window is optional: it starts at the latest of its readiness, `not_before` and the
/// instant that frees what it holds, and only if by its duration it then ends by `deadline` (a
/// send: its transfer). Otherwise it is skipped, and so is what depends on it. Times count from the
/// start of the iteration; in a stream, after its first iteration, from the first start of an op
/// without a window in that iteration.
///
/// No one waits for an optional op, or for what depends on one, but what depends on it: the other
/// ops of its lane keep their order among themselves and pass it while it is not ready. It waits
/// for those before it. So one that does not run changes no time of another op.
struct OpWindow {
  OpId op{};
  Duration not_before{};
  Duration deadline = kNoDeadline;
};

enum class Strength : std::uint8_t { strong, weak };

/// `op` of iteration n depends on `before`, an op of any rank, of iteration n - iterations_back
/// (none: on nothing). A weak dependency does not wait: the op starts without it, and its version
/// is the iteration of the latest instance of `before`, up to n - iterations_back, that had ended
/// by its start (that very instant included), or -1.
struct FarDependency {
  OpId op{}, before{};
  int iterations_back = 0;
  Strength strength = Strength::strong;
};

/// For what serves by deadline: the least first. Ops without one have 0.
struct OpPriority {
  OpId op{};
  std::int32_t priority = 0;
};

/// The op moves slice `slice` of `slices` of its message, so that one of low priority never holds
/// a link for longer than a slice takes. For rows; to lanes and resources each slice is an op.
struct OpSlice {
  OpId op{};
  std::int32_t slice = 0, slices = 1;
};

/// The op serves a request from outside: it computes, or carries, something of so many tokens of
/// its prompt. Of computation on a device it is a prefill: rows have that kind. For rows alone.
struct OpServed {
  OpId op{};
  std::int32_t request = -1, tokens = -1;
};

/// What an op beside the device does, where the plan says more than what it holds. For rows, and
/// for what runs on ranks.
struct OpTask {
  OpId op{};
  TaskKind kind = TaskKind::host_task;
};

/// The lane draws its ops from a source, made anew for each run. It lists all that it may draw.
struct LaneSource {
  LaneId lane{};
  std::function<std::unique_ptr<OpSource>()> make;
};

/// Deadlines of windows that move with what has happened, as known when an op could start: until
/// then it is not given up. What starts is late where it ends after the deadline that it started
/// by.
struct MovingDeadlines {
  std::vector<OpId> heeds;  ///< ascending: ops of any rank, of whose ends the source hears
  std::function<std::unique_ptr<DeadlineSource>()> make;  ///< empty: they stay as windows say
};

/// What computation pays for messages beside it. From the start of a message's transfer to its end
/// both its ranks go on with what holds a device at 1/slowdown of the message's level; of several
/// messages at once the largest counts. Other ranks of their nodes, host tasks and copies do not
/// slow, and a collective that is one op is no message. Times are exact: what is left of a block is
/// a rational number, and it ends at the first nanosecond at which nothing is left.
struct Overlap {
  static constexpr std::int64_t kNone = 1'000'000;
  /// By NetworkLevel, in millionths: exact for what people write.
  std::array<std::int64_t, kCountOf<NetworkLevel>> slowdown_millionths{kNone, kNone, kNone};

  [[nodiscard]] static Overlap of(double node, double datacenter, double wan);
  [[nodiscard]] std::int64_t at(NetworkLevel level) const {
    return slowdown_millionths[static_cast<std::size_t>(level)];
  }
  [[nodiscard]] bool none() const { return *this == Overlap{}; }
  friend bool operator==(const Overlap&, const Overlap&) = default;
};

/// What few ops have, beside the ops: empty for the plan of a schedule.
struct PlanExtras {
  std::vector<OpWindow> windows;   ///< one at most of each op
  std::vector<FarDependency> far;  ///< beside Plan::after
  std::vector<OpPriority> priorities;
  std::vector<OpSlice> slices;      ///< ascending by op
  std::vector<OpServed> served;     ///< ascending by op
  std::vector<OpTask> tasks;        ///< ascending by op
  std::vector<LaneSource> sources;  ///< one at most of each lane
  MovingDeadlines deadlines;
  Overlap overlap;
  /// By op: what blocks are said to take, where they take another time (with_noise()); empty: they
  /// take what is said. Whether an optional one would be in time is judged by it.
  std::vector<Duration> announced;
  /// By op: whose id its noise is drawn by, so that ops meet the same in a plan that others were
  /// added to; empty: its own.
  std::vector<OpId> noise_ids;
};

/// From an iteration on, ops take other times, and sends are of other sizes.
struct StreamSetting {
  struct OpDuration {
    OpId op{};
    Duration duration{};
    std::optional<Bytes> size{};  ///< of a send; none: it keeps its size
  };
  int from_iteration = 0;
  std::vector<OpDuration> durations;
};

/// A plan that runs on without a barrier: an op is (op of the plan, iteration). Lanes keep the
/// order of iterations: a lane begins one when its ops without a window of the one before have
/// started.
///
/// A stream that goes on has been run up to `first`: all of the iterations before it has ended, so
/// that no one waits for it, and a version may be of it. It begins with free lanes and resources,
/// and its times count from there; iterations keep their numbers.
struct Stream {
  int iterations = 1;                   ///< of the whole stream: 0 to iterations - 1
  std::vector<StreamSetting> settings;  ///< ascending by iteration
  int first = 0;

  /// The version that an op of `iteration` meets where nothing that ran here has ended yet.
  [[nodiscard]] int version_before(int iteration, int iterations_back) const {
    return std::max(-1, std::min(first - 1, iteration - iterations_back));
  }
};

}  // namespace longhaul::plan
