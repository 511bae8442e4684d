#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "base/result.hpp"
#include "plan/asked_deadlines.hpp"
#include "plan/asked_sources.hpp"
#include "plan/link_model/weather.hpp"
#include "plan/plan.hpp"
#include "plan/stream_values.hpp"
#include "sim/events/block_progress.hpp"
#include "sim/events/event_queue.hpp"
#include "sim/events/live_iterations.hpp"
#include "sim/resources/resource_pool.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::sim {

/// Runs a plan in order of time: one iteration, or a stream of them. On plans that need no order of
/// time it gives what LaneSweep gives; it also plays what plan/extras/ has.
///
/// Within an instant: events; lanes and ops that these let go on, until none can; of lanes that are
/// an order, but whose ops may be passed, the first that can start; sources; requests for resources
/// that serve in order of readiness, by (ready, iteration, op); then, of ops that wait for what
/// chooses, the first that can start. Each step returns to the first, so that what gets ready in
/// the instant takes part in it.
///
/// Lanes whose ops start in turn and all run cost one event an op: the head of the lane sleeps
/// until its start is known to have come. Others (lanes that choose, have optional ops or a source)
/// hold several ops at a time, each of which waits by itself: event_driver_pools.cpp.
class EventDriver {
public:
  EventDriver(const Plan& plan, const plan::Stream& stream, const plan::WeatherOfIteration& at);
  using Sink = std::function<void(int iteration, const OpResults& results)>;
  /// Call once. Hands over each iteration when it is complete, in order. Refused where the plan
  /// deadlocks.
  std::optional<Refusal> run(const Sink& sink);
  /// A single iteration.
  Result<OpResults> run();
  /// While a sink is called: a setting of iterations none of which has begun on any lane, after all
  /// those before. Throws Error where one has.
  void add_setting(const plan::StreamSetting& setting);
  [[nodiscard]] std::size_t most_live_iterations() const { return instances_.most_live(); }
  [[nodiscard]] std::size_t most_settings() const { return most_settings_; }

private:
  using Sources = plan::AskedSources<std::uint32_t>;  ///< of instances
  static constexpr std::uint32_t kNoWaiter = LiveIterations::kNoWaiter;
  static constexpr std::uint32_t kNoOp = 0xffffffff;
  static constexpr Duration kPending = LiveIterations::kPending;
  static constexpr Duration kNever = LiveIterations::kNever;
  static constexpr Duration kForever = Duration::max();

  /// How the ops of a lane are brought forward: the head alone, in turn; several at a time; those
  /// that a source draws.
  enum class Way : std::uint8_t { in_turn, pool, sourced };
  /// What holding a set of resources takes: nothing but the lane's order, a request, a choice.
  enum class Access : std::uint8_t { own, request, choice };
  using Stage = LiveIterations::Stage;

  struct LaneState {
    std::uint32_t next = 0, end = 0;  ///< instances
    std::uint32_t last = kNoOp;
    std::uint32_t next_waiter = kNoWaiter;
    Duration last_start{};
    Duration free{};  ///< kForever: what it holds is held until no one knows when
    int iteration = -1;
    Way way = Way::in_turn;
    Serve serve = Serve::order;
    std::uint32_t awaited = kNoOp;  ///< Way::pool: the op that the rest of the lane waits for
    std::uint32_t open_mandatory = 0, open_all = 0;  ///< of this iteration, not served yet
    bool has_mandatory = false;
  };
  struct Bound {
    Duration until{};
    std::uint32_t by = index(kNone<OpId>);
    BoundKind kind = BoundKind::start;
    void raise(Duration to, std::uint32_t cause, BoundKind why) {
      if (to > until) *this = {to, cause, why};
    }
  };
  struct Request {
    Duration ready{};
    std::uint32_t instance = 0;
    int iteration = 0;
    bool operator>(const Request& other) const;
  };
  /// An op that waits for resources that choose, in the order of choice.
  struct Candidate {
    std::int64_t first = 0, second = 0;
    std::uint32_t op = 0;
    std::uint32_t instance = 0;
    int iteration = 0;
    std::uint32_t from = kNoOp;  ///< the resource that it waited for
    bool operator>(const Candidate& other) const;
  };
  template <typename T>
  using Least = std::priority_queue<T, std::vector<T>, std::greater<>>;

  // event_driver_set_up.cpp
  void set_up_lanes();
  void set_up_tables();
  void set_up_dependents();
  [[nodiscard]] Access access_of(const Plan& plan, std::size_t set) const;

  // event_driver.cpp: the loop, lanes in turn
  void drain();
  void handle(const Event& event);
  [[nodiscard]] bool is_stale(const Event& event) const;
  bool end_instant();
  void advance(std::uint32_t lane);
  bool begin_iteration(std::uint32_t lane);
  [[gnu::always_inline]] bool post(std::uint32_t id, std::uint32_t waiter);
  [[gnu::always_inline]] bool try_start(std::uint32_t id, std::uint32_t lane);
  [[gnu::always_inline]] bool start_message(std::uint32_t send, std::uint32_t other_lane);
  [[gnu::always_inline]] void go_on(std::uint32_t lane);
  [[gnu::always_inline]] Bound bound_of(std::uint32_t id) const;
  void run_compute(std::uint32_t id, const Bound& bound);
  [[gnu::always_inline]] Duration run_transfer(std::uint32_t send, const Bound& bound);
  [[gnu::always_inline]] void finish(std::uint32_t id, Duration hold_end, Duration end,
                                     const Bound& bound);
  void wake(std::uint32_t waiting);
  void sleep(std::uint32_t lane, Duration until);
  [[nodiscard]] const plan::Draw* draw_of(std::uint32_t id) const;
  [[nodiscard]] Duration duration_of(std::uint32_t id) const;
  [[nodiscard]] Duration announced(std::uint32_t id) const;
  [[nodiscard]] Duration hold_time(std::uint32_t send, Duration begin) const;
  [[nodiscard]] Duration latency(std::uint32_t recv, Duration end) const;
  void hand_over();
  void clear_skipped(OpResults& results) const;

  // event_driver_requests.cpp: what serves in order of readiness
  void ask(std::uint32_t id);
  void serve(const Request& request);
  void ask_successors(std::uint32_t id);
  bool start_collective(std::uint32_t id, std::uint32_t lane);
  [[nodiscard]] Bound last_member(std::uint32_t id) const;
  Duration run_collective(std::uint32_t id, const Bound& latest);

  // event_driver_pools.cpp: lanes with several ops at a time
  [[nodiscard]] bool is_mandatory(std::uint32_t id) const {
    return optional_.empty() || optional_[instances_.op(id)] == 0;
  }
  void admit(std::uint32_t lane);
  void admit_op(std::uint32_t id);
  void consider(std::uint32_t id);
  void leave(std::uint32_t id);
  void skip(std::uint32_t id, Outcome outcome);
  void tell_dependents(std::uint32_t id);
  [[nodiscard]] bool needs_skipped(std::uint32_t id) const;
  void give_up(std::uint32_t id);
  bool post_rest(std::uint32_t id, std::uint32_t waiter, Bound& bound);
  bool wait_for(std::uint32_t cause, std::uint32_t id, std::uint32_t waiter);
  void expect_give_up(std::uint32_t id);
  void begin_windows(int iteration);
  bool ask_sources();
  bool ask_source(Sources::Entry& entry);
  void draw(Sources::Entry& entry, const plan::Draw& drawn);
  void end_source_iteration(Sources::Entry& entry);
  bool end_sources();

  // event_driver_choice.cpp: what chooses
  void arrive(std::uint32_t id);
  [[nodiscard]] Duration arrival_of(std::uint32_t id) const;
  [[nodiscard]] Candidate candidate(std::uint32_t id) const;
  enum class Which : std::uint8_t { orders, all };  ///< `orders`: of lanes that are one
  bool choose(Which which);
  void pull(std::uint32_t resource);
  void start_chosen(std::uint32_t id);
  void release(std::uint32_t id);
  [[nodiscard]] std::uint32_t busy_resource(std::uint32_t id) const;
  [[nodiscard]] bool misses_deadline(std::uint32_t id, Duration start);
  [[nodiscard]] Duration deadline_of(std::uint32_t id, Duration start);

  // event_driver_notes.cpp: what others learn of an op
  void note_start(std::uint32_t id, Duration start);
  void note_end(std::uint32_t id, Duration hold_end, Duration end);
  void begin_block(std::uint32_t id, const Bound& bound);
  void end_block(std::uint32_t id);
  void hold_ranks(std::uint32_t send, int by);
  void note_op_end(std::uint32_t id, Duration end);
  void meet_versions();
  [[nodiscard]] Refusal deadlock() const;
  [[nodiscard]] std::uint32_t blocker_of(std::uint32_t id) const;
  [[nodiscard]] std::uint32_t first_unfinished() const;

  [[nodiscard]] std::uint32_t lane_of(std::uint32_t id) const {
    return static_cast<std::uint32_t>(index(plan_.ops[instances_.op(id)].lane));
  }
  [[nodiscard]] const Op& op(std::uint32_t id) const { return plan_.ops[instances_.op(id)]; }
  [[nodiscard]] Access access(const Op& op) const { return access_[index(op.resources)]; }
  [[nodiscard]] OpTime& time(std::uint32_t id) { return instances_.times[id]; }
  [[nodiscard]] const OpTime& time(std::uint32_t id) const { return instances_.times[id]; }
  /// The other side of a message.
  [[nodiscard]] std::uint32_t other_side(std::uint32_t id) const {
    return instances_.base(id) + op(id).match;
  }
  [[nodiscard]] Stage& stage(std::uint32_t id) { return instances_.stages[id]; }

  const Plan& plan_;
  const plan::Stream& stream_;
  plan::WeatherOfIteration at_;
  bool noted_;  ///< something beside the times matters: the plan needs order of time, or streams
  LiveIterations instances_;
  EventQueue events_;
  Duration now_{};
  std::vector<LaneState> lanes_;
  std::vector<Access> access_;       ///< by resource set
  std::vector<std::uint32_t> work_;  ///< lanes, then instances: what may go on
  ResourcePool pool_;
  Least<Request> requests_;
  Duration served_{};

  /// A table beside the ops: where an op's entries begin, one more at the end; empty: no op has
  /// any.
  struct FarTable {
    std::vector<std::uint32_t> first;
    std::vector<plan::FarDependency> all;
  };
  FarTable far_;
  FarTable dependents_;  ///< by the op that they need; made when the first op is skipped
  std::vector<std::uint8_t> optional_;  ///< by op; empty: none is
  std::map<std::uint32_t, plan::OpWindow> windows_;
  std::vector<std::int32_t> priorities_;             ///< by op; empty: none has any
  std::vector<std::uint8_t> watched_;                ///< by op: a version may be its iteration
  std::map<std::uint32_t, std::vector<int>> ended_;  ///< of watched ops: iterations, ascending
  int reach_of_versions_ = 0;         ///< how many iterations weak dependencies go back
  std::vector<std::uint32_t> unmet_;  ///< ops that start now and note their version
  std::map<int, Duration> begun_;     ///< iterations that have begun
  std::map<int, std::vector<std::uint32_t>> before_begin_;  ///< optional ops that wait for that
  plan::StreamValues values_;                               ///< by iteration
  std::size_t most_settings_ = 0;                           ///< that were in memory at a time
  std::unique_ptr<Sources> sources_;
  plan::AskedDeadlines deadlines_;

  std::vector<std::uint32_t> busy_;           ///< by resource that chooses: its holders
  std::vector<ResourcePool::Free> released_;  ///< by such a resource: its last release
  std::vector<Least<Candidate>> waiting_;     ///< by such a resource
  Least<Candidate> active_;                   ///< that may start in this instant

  std::unique_ptr<BlockProgress> progress_;  ///< where computation slows
  std::vector<std::uint8_t> on_device_;      ///< by resource set: does it hold a device?
  std::map<std::uint32_t, Bound> running_;   ///< by instance: blocks that have begun
};

}  // namespace longhaul::sim
