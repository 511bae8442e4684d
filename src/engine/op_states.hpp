#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "comm/group/host_ranks.hpp"
#include "cuda/accelerator.hpp"
#include "engine/credit/shadow_time.hpp"
#include "engine/watchdog/op_events.hpp"
#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::engine {

/// Until when an op had to wait, and for what.
struct Cause {
  TimePoint until{};
  OpId by = kNone<OpId>;
  BoundKind kind = BoundKind::start;
  /// Takes the later of the two; the one told first where they are equal.
  void raise(TimePoint to, OpId cause, BoundKind why) {
    if (to > until) *this = {to, cause, why};
  }
};

/// Blocks and messages of this rank as ranges of a profiler (accelerator.hpp), by the host's looks:
/// a block that a device was given ahead begins there.
class OpMarks {
public:
  explicit OpMarks(const Plan& plan) : plan_{plan} {}
  void started(OpId id);
  void ended(OpId id);

private:
  const Plan& plan_;
  std::unordered_map<OpId, cuda::Mark> open_;
};

/// The states of this rank's ops in the running iteration: which dependencies are open, when
/// things happened. Every end has two stamps: `seen` is when this rank noticed, `due` when it was
/// over (a block's or a hold's deadline); they differ by how late the host woke us.
class OpStates {
public:
  /// Collective over the ranks of this host.
  OpStates(const Plan& plan, const comm::HostRanks& host_ranks);

  void begin_iteration(TimePoint at);
  /// Are all ops done that it depends on?
  [[nodiscard]] bool is_ready(OpId id) const { return open_[local(id)] == 0; }
  /// The dependency that ended last; the start of the iteration where there is none.
  [[nodiscard]] const Cause& ready_cause(OpId id) const { return cause_[local(id)]; }
  [[nodiscard]] bool all_done() const { return remaining_ == 0; }

  /// Ops of this rank that wait for `id`.
  [[nodiscard]] std::span<const OpId> dependents(OpId id) const {
    const std::size_t at = local(id);
    return {dependents_.data() + dependent_begin_[at],
            dependents_.data() + dependent_begin_[at + 1]};
  }

  /// An op whose end is only a matter of time: what waits for it may be given to a device that
  /// waits itself.
  void will_end(OpId id, TimePoint due) { due_[local(id)] = due; }
  /// kNever where it is not known.
  [[nodiscard]] TimePoint due(OpId id) const { return due_[local(id)]; }
  [[nodiscard]] bool is_done(OpId id) const { return done_[local(id)]; }

  /// Shows blocks and messages to a profiler from now on.
  void show_marks() { marks_.emplace(plan_); }

  /// What it depends on, with and without credit; complete when it is ready.
  [[nodiscard]] const ShadowTime& inputs(OpId id) const { return inputs_[local(id)]; }
  /// By how much later the end of an op would be seen without credit: to be told before its end.
  void set_lag(OpId id, Duration lag) { lag_[local(id)] = lag; }
  /// The end of the last op, with and without credit.
  [[nodiscard]] const ShadowTime& last_end() const { return last_end_; }

  void posted(OpId id);
  void started(OpId id, TimePoint seen, const Cause& cause);
  void ended(OpId id, TimePoint seen, TimePoint due);
  /// A device's stamps of a block that it was `given` earlier, before it is ended: when it
  /// began. Inputs that were still under way when it was given had come by then.
  void stamped(OpId block, TimePoint given, TimePoint start, const Cause& cause);
  /// Tells the neighbours which op the next block waits for.
  void publish_wait(OpId next_block) const;
  /// Tells them that we are alive and getting on.
  void publish_progress(TimePoint at) const;

  [[nodiscard]] std::uint32_t count() const { return range_.count; }
  [[nodiscard]] OpTimes& times() { return times_; }
  /// The events of all ranks of this host.
  [[nodiscard]] const OpEvents& events() const { return events_; }

private:
  [[nodiscard]] std::size_t local(OpId id) const { return index(id) - range_.first; }
  void publish(OpId id, comm::OpEvent event) const;

  const Plan& plan_;
  const comm::HostRanks& host_ranks_;
  OpRange range_;
  std::vector<std::uint16_t> open_;             ///< dependencies that are not done
  std::vector<Cause> cause_;                    ///< the latest of those that are
  std::vector<std::uint32_t> dependent_begin_;  ///< into dependents_; one more at the end
  std::vector<OpId> dependents_;
  std::vector<TimePoint> due_;
  std::vector<ShadowTime> inputs_;
  std::vector<Duration> lag_;
  ShadowTime last_end_;
  std::vector<bool> posted_, done_;
  std::uint32_t remaining_ = 0;
  OpTimes times_;
  OpEvents events_;
  std::optional<OpMarks> marks_;
};

}  // namespace longhaul::engine
