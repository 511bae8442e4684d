#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "base/result.hpp"
#include "plan/link_model/weather.hpp"
#include "plan/plan.hpp"
#include "sim/resources/resource_pool.hpp"
#include "sim/simulate.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::sim {

/// Evaluates a plan lane by lane, without a queue of events. A lane runs until its next op waits
/// for something; the end of that something puts the lane back on the worklist. What a single
/// lane holds (its device, the link of a pair) needs no queue either: its order is the lane's. Only
/// ops on resources that several lanes share are kept in a heap by (readiness, op id); the earliest
/// is served when the worklist is empty, for then nothing earlier can still become ready.
class LaneSweep {
public:
  /// Under the weather of one iteration; times count from its begin. `hop`: see simulate().
  explicit LaneSweep(const Plan& plan, const plan::WeatherOfIteration& at = {}, Duration hop = {});
  /// Before run(): adds the ties that it meets.
  void note_ties(std::vector<Tie>& ties);
  /// Before run(): it gives up where the plan ends at this time or later for certain: an operation
  /// begins so late that the rest of its lane, one after the other, does, or a message that the
  /// rest of what passes a resource of its route does.
  void give_up_at(Duration limit);
  /// After run(): it has.
  [[nodiscard]] bool has_given_up() const { return gave_up_; }
  /// Call once. Refused where the plan deadlocks.
  Result<OpTimes> run();

private:
  static constexpr std::uint32_t kNoLane = 0xffffffff;
  static constexpr std::uint32_t kNoResource = 0xffffffff;
  struct LaneState {
    std::uint32_t next = 0, end = 0;  ///< op ids
    std::uint32_t last = index(kNone<OpId>);
    std::uint32_t next_waiter = kNoLane;  ///< chain of lanes that wait for one op
    Duration last_start{};                ///< ops start in turn
    Duration free{};                      ///< end of the last hold of its private resources
  };
  /// Until when an op had to wait, and for what.
  struct Bound {
    Duration until{};
    std::uint32_t by = index(kNone<OpId>);
    BoundKind kind = BoundKind::start;
    void raise(Duration to, std::uint32_t cause, BoundKind why) {
      if (to > until) *this = {to, cause, why};
    }
  };
  struct Request {
    Duration ready;
    std::uint32_t op;
    bool operator>(const Request& other) const {
      return ready != other.ready ? ready > other.ready : op > other.op;
    }
  };

  void drain();
  void advance(std::uint32_t lane);
  // The steps of most ops are inlined into advance() (docs/performance.md).
  [[gnu::always_inline]] bool post(std::uint32_t id, std::uint32_t lane);
  [[gnu::always_inline]] bool try_start(std::uint32_t id);
  [[gnu::always_inline]] bool start_message(std::uint32_t send, std::uint32_t other_lane);
  [[gnu::always_inline]] void go_on(std::uint32_t lane);
  bool start_collective(const Op& op);
  [[nodiscard]] Bound last_member(const Op& op) const;
  Duration run_collective(const Op& op, const Bound& latest);
  Duration run_shared(std::uint32_t id, const Bound& bound);
  void ask(std::uint32_t id);
  void serve(const Request& request);
  void look_for_ties(std::uint32_t id);
  void look_whether_late(std::uint32_t send, Duration begin);

  void start_by_words(const Op& last);
  [[nodiscard]] Duration hold_time(std::uint32_t send, Duration begin) const;
  [[nodiscard]] Duration latency(std::uint32_t recv, Duration end) const;
  [[nodiscard]] Duration ring_time(OpId member, Duration begin) const;
  [[nodiscard, gnu::always_inline]] Duration told_ready(std::uint32_t recv) const;

  [[gnu::always_inline]] Duration run_compute(std::uint32_t id, const Bound& bound);
  [[gnu::always_inline]] Duration run_transfer(std::uint32_t send, const Bound& bound);
  [[nodiscard, gnu::always_inline]] Bound bound_of(std::uint32_t id) const;
  [[gnu::always_inline]] void finish(std::uint32_t id, Duration hold_end, Duration end,
                                     const Bound& bound);
  [[nodiscard]] std::uint32_t exchange_waiter(std::uint32_t id, std::uint32_t lane);
  void prefetch(std::uint32_t id) const;

  [[nodiscard]] bool shared(const Op& op) const { return shared_set_[index(op.resources)] != 0; }
  [[nodiscard]] std::uint32_t lane_of(std::uint32_t id) const {
    return static_cast<std::uint32_t>(index(plan_.ops[id].lane));
  }
  [[nodiscard]] Refusal deadlock() const;
  /// The op that a stuck op waits for.
  struct Blocker {
    std::uint32_t op;
    std::uint32_t turn_on = kNoResource;  ///< a resource whose stated order puts `op` first
  };
  [[nodiscard]] Blocker blocker_of(std::uint32_t id) const;

  const Plan& plan_;
  plan::WeatherOfIteration at_;
  Duration hop_;
  bool plain_;  ///< no weather, and hops take no time
  /// ready < 0: not posted; end < 0: not done, and `start` holds the first of the chain of lanes
  /// that wait for it (kNoLane: none).
  OpTimes times_;
  std::vector<LaneState> lanes_;
  std::vector<std::uint32_t> work_;       ///< lanes to advance
  std::vector<std::uint32_t> posted_;     ///< by collective: members that are ready
  std::vector<std::uint8_t> shared_set_;  ///< by resource set, 0 or 1: does another lane hold some?
  ResourcePool pool_;                     ///< of shared resources
  std::priority_queue<Request, std::vector<Request>, std::greater<>> requests_;
  Duration served_{};  ///< the instant that requests are served in
  /// When a resource was asked for that was given last, and by which lane.
  struct LastAsked {
    Duration at{-1};
    LaneId by{};
  };
  std::vector<LastAsked> last_asked_;  ///< by resource; empty: ties are not noted
  std::vector<Tie>* ties_ = nullptr;
  bool gave_up_ = false;
  /// By lane: how late its next operation may begin, if none waits after. Empty: no limit. And by
  /// resource the next message.
  std::vector<Duration> latest_start_, latest_hold_;
};

}  // namespace longhaul::sim
