#pragma once

#include <algorithm>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "comm/transport.hpp"
#include "engine/device.hpp"
#include "engine/links.hpp"
#include "engine/links/link_conditions.hpp"
#include "engine/op_states.hpp"
#include "engine/options.hpp"
#include "engine/payloads/data_plane.hpp"
#include "engine/payloads/message.hpp"
#include "engine/payloads/relay_buffers.hpp"
#include "engine/tags.hpp"

namespace longhaul::engine {

/// Deadlines of ops: the end of a hold, an arrival. The earliest first, ties by op id.
class Timers {
public:
  struct Timer {
    TimePoint due{};
    OpId op{};
    friend bool operator>(const Timer& a, const Timer& b) {
      return a.due != b.due ? a.due > b.due : a.op > b.op;
    }
  };
  void add(TimePoint due, OpId op) { queue_.push({due, op}); }
  [[nodiscard]] TimePoint next() const { return queue_.empty() ? kNever : queue_.top().due; }
  /// Op of the earliest; none where there is none.
  [[nodiscard]] OpId next_op() const { return queue_.empty() ? kNone<OpId> : queue_.top().op; }
  [[nodiscard]] std::optional<Timer> take_due(TimePoint at) {
    if (next() > at) return std::nullopt;
    const Timer timer = queue_.top();
    queue_.pop();
    return timer;
  }

private:
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> queue_;
};

/// The purpose of an unfinished operation of the transport.
enum class Role : std::uint8_t {
  header_sent,
  payload_sent,
  go_ahead_sent,
  header_received,
  payload_received,
  go_ahead_received,
  barrier,
  collective,
};
struct Expected {
  Role role{};
  OpId op = kNone<OpId>;  ///< none: the barrier of all ranks
};

/// Times of real transfers by the receivers' clocks, from header seen to payload complete.
struct TransferCost {
  std::int64_t transfers = 0;
  Duration total{};
  Duration longest{};
};

/// A place in one lane of this rank: the ops from `next` to before `end` are still to come.
struct LaneCursor {
  LaneId lane{};
  std::uint32_t next = 0, end = 0;  ///< op ids

  void rewind(const Plan& plan) {
    const Lane& ops = plan.lanes[index(lane)];
    next = static_cast<std::uint32_t>(index(ops.first));
    end = next + ops.count;
  }
};

/// One `Cursor` (a LaneCursor and more) for each lane of this kind and rank that has ops.
template <typename Cursor>
[[nodiscard]] std::vector<Cursor> make_cursors(const Plan& plan, Rank rank, OpKind kind) {
  std::vector<Cursor> cursors;
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    const Lane& lane = plan.lanes[i];
    if (lane.kind != kind || lane.rank != rank || lane.count == 0) continue;
    cursors.emplace_back().lane = LaneId{static_cast<std::uint32_t>(i)};
  }
  return cursors;
}

/// The state that all parts of the engine read and write.
struct EngineState {
  EngineState(const Plan& the_plan, const comm::HostRanks& the_ranks,
              comm::Transport& the_transport, DataPlane& the_plane,
              const EngineOptions& the_options, std::uint32_t run_number)
      : plan{the_plan},
        host_ranks{the_ranks},
        transport{the_transport},
        data_plane{the_plane},
        options{the_options},
        run{run_number},
        tags{the_plan, the_ranks.ranks(), the_transport.tags()},
        relays{the_plan, the_ranks.self()},
        ops{the_plan, the_ranks},
        conditions{the_plan} {
    if (emulates())
      links.emplace(the_plan, Links::Place{the_ranks, the_transport, tags.leases(), ops.events(),
                                           options.clock_offset});
    if (options.marks) ops.show_marks();
  }

  [[nodiscard]] bool emulates() const { return options.emulation == Emulation::on; }
  /// Does a transfer have to wait for its receiver's word? A receive that depends on nothing is
  /// posted from the start and needs none: so are all of them in decoupled plans.
  [[nodiscard]] bool needs_go_ahead(OpId send) const {
    return plan.op(OpId{plan.op(send).match}).after_count > 0;
  }
  /// When something of that duration begins that waited for `cause` and that we get to at `at`.
  [[nodiscard]] TimePoint begin_at(const Cause& cause, TimePoint at, Duration duration) const {
    if (cause.kind == BoundKind::start) return at;
    return std::clamp(cause.until, at - most_credit(options.credit, duration), at);
  }
  /// Tells the device, where its blocks slow beside messages.
  void message_holds(OpId send, TimePoint begin) const {
    if (slowed == nullptr) return;
    slowed->message_holds(plan.level_of(send), begin, begin + conditions.hold(send, begin));
  }
  void expect(comm::RequestId request, Role role, OpId op) { expected[request] = {role, op}; }

  const Plan& plan;
  const comm::HostRanks& host_ranks;
  comm::Transport& transport;
  DataPlane& data_plane;
  const EngineOptions& options;
  std::uint32_t run = 0;
  int iteration = 0;
  TimePoint began{};             ///< the iteration, on this rank
  std::optional<OpId> fault_op;  ///< target of the fault, in this iteration

  Tags tags;
  RelayBuffers relays;
  OpStates ops;
  LinkConditions conditions;
  Timers timers;
  std::optional<Links> links;  ///< none without emulation: no op holds anything
  Checks checks;
  std::vector<WrongMessage> wrong;  ///< of this iteration, the first few
  TransferCost transfers;
  Lateness lateness;
  CreditUse credit;
  int open_transfers = 0;  ///< header seen, payload on its way
  std::unordered_map<comm::RequestId, Expected> expected;
  Device* slowed = nullptr;   ///< this rank's, where its blocks slow beside messages
  OpId posted = kNone<OpId>;  ///< last given to the transport, and perhaps not expected yet
};

}  // namespace longhaul::engine
