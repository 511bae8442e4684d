#include "sim/lane_sweep.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::sim {
namespace {

constexpr Duration kPending{-1};

/// Is there more to it than the order of its own lane: other lanes, a stated order, a capacity?
bool needs_queue(const Plan& plan, std::size_t set) {
  for (std::uint32_t i = plan.set_begin[set]; i < plan.set_begin[set + 1]; ++i) {
    const Resource& resource = plan.resources[index(plan.set_items[i])];
    if (resource.lanes > 1 || !resource.order.empty() || resource.capacity != 1) return true;
  }
  return false;
}

}  // namespace

LaneSweep::LaneSweep(const Plan& plan, const plan::WeatherOfIteration& at, Duration hop)
    : plan_{plan},
      at_{at},
      hop_{hop},
      plain_{at.weather == nullptr && hop == Duration::zero()},
      times_(plan.ops.size(), OpTime{kPending, Duration{kNoLane}, kPending}),
      posted_(plan.collectives.size(), 0),
      pool_{plan} {
  for (const Lane& lane : plan.lanes) {
    LaneState state;
    state.next = static_cast<std::uint32_t>(index(lane.first));
    state.end = state.next + lane.count;
    lanes_.push_back(state);
  }
  for (std::size_t set = 0; set + 1 < plan.set_begin.size(); ++set)
    shared_set_.push_back(needs_queue(plan, set) ? 1 : 0);
}

Result<OpTimes> LaneSweep::run() {
  for (std::size_t lane = lanes_.size(); lane-- > 0;)
    work_.push_back(static_cast<std::uint32_t>(lane));
  drain();
  while (!requests_.empty() && !gave_up_) {
    const Request request = requests_.top();
    requests_.pop();
    serve(request);
    drain();
  }
  if (gave_up_) return refused("{} ends too late", plan_.schedule);
  for (const LaneState& lane : lanes_) {
    if (lane.next == lane.end) continue;
    if (ties_ != nullptr)
      return refused("{} deadlocks", plan_.schedule);  // some ranks have no names
    return deadlock();
  }
  return std::move(times_);
}

void LaneSweep::drain() {
  while (!work_.empty() && !gave_up_) {
    const std::uint32_t lane = work_.back();
    work_.pop_back();
    advance(lane);
  }
}

void LaneSweep::advance(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  while (state.next != state.end) {
    if (times_[state.next].ready == kPending && !post(state.next, lane)) return;
    if (!try_start(state.next)) return;
  }
}

/// Fixes when the op at the head of its lane is ready; false: the lane waits for a dependency.
inline bool LaneSweep::post(std::uint32_t id, std::uint32_t lane) {
  if (plan_.ops[id].after_count == 0) {  // bound by nothing, as its record says already
    times_[id].ready = Duration{};
    return true;
  }
  Bound bound;
  for (const OpId before : plan_.after_of(OpId{id})) {
    const auto cause = static_cast<std::uint32_t>(index(before));
    const Duration end = times_[cause].end;
    if (end == kPending) {
      lanes_[lane].next_waiter = exchange_waiter(cause, lane);
      return false;
    }
    bound.raise(end, cause, BoundKind::dependency);
  }
  times_[id].ready = bound.until;
  times_[id].bound_by = OpId{bound.by};
  times_[id].bound_kind = bound.kind;
  return true;
}

/// Starts a posted op if it can be; false: another lane will, or it asked for a shared resource.
inline bool LaneSweep::try_start(std::uint32_t id) {
  const Op& op = plan_.ops[id];
  switch (op.kind) {
    case OpKind::compute:
      if (shared(op)) return ask(id), false;
      run_compute(id, bound_of(id));
      return true;
    case OpKind::send: return times_[op.match].ready != kPending && start_message(id, op.match);
    case OpKind::recv:
      return times_[op.match].ready != kPending && start_message(op.match, op.match);
    case OpKind::collective: return start_collective(op);
  }
  return false;
}

/// Posts the next op of a lane of messages, whose last one has just been started by its other side.
/// Most cannot start yet: their lane need not come to the worklist for them.
inline void LaneSweep::go_on(std::uint32_t lane) {
  const LaneState& state = lanes_[lane];
  if (state.next == state.end) return;
  if (!post(state.next, lane)) return;
  if (times_[plan_.ops[state.next].match].ready != kPending) work_.push_back(lane);
}

/// Both sides are posted. `other` is the side whose lane is not being advanced.
inline bool LaneSweep::start_message(std::uint32_t send, std::uint32_t other) {
  if (shared(plan_.ops[send])) return ask(send), false;
  run_transfer(send, bound_of(send));
  go_on(lane_of(other));
  return true;
}

bool LaneSweep::start_collective(const Op& op) {
  const auto& members = plan_.collectives[op.match];
  if (++posted_[op.match] < members.size()) return false;
  if (hop_ > Duration::zero()) {
    LONGHAUL_ASSERT(!shared(op), "a collective of chunk {} holds links for ranks", op.chunk);
    start_by_words(op);
    return true;
  }
  if (shared(op)) {
    requests_.push({last_member(op).until, static_cast<std::uint32_t>(index(members.front()))});
    return false;
  }
  run_collective(op, last_member(op));
  return true;
}

/// The member that comes last, and when.
LaneSweep::Bound LaneSweep::last_member(const Op& op) const {
  Bound latest;
  for (const OpId member : plan_.collectives[op.match]) {
    const auto id = static_cast<std::uint32_t>(index(member));
    const Bound own = bound_of(id);
    if (own.until >= latest.until) latest = {own.until, id, BoundKind::rendezvous};
  }
  return latest;
}

/// Gives back until when its members hold their resources.
Duration LaneSweep::run_collective(const Op& op, const Bound& latest) {
  const auto& members = plan_.collectives[op.match];
  const Duration end = latest.until + ring_time(members.front(), latest.until);
  for (const OpId member : members) {
    const auto id = static_cast<std::uint32_t>(index(member));
    const Bound own = bound_of(id);
    finish(id, end, end, own.until == latest.until ? own : latest);
    if (lane_of(id) != index(op.lane)) work_.push_back(lane_of(id));
  }
  return end;
}

/// All members' ops say the same, and so does the weather.
Duration LaneSweep::ring_time(OpId member, Duration begin) const {
  if (at_.weather == nullptr) return plan_.op(member).duration;
  return at_.weather->collective(member, at_.iteration, at_.begin + begin);
}

Duration LaneSweep::hold_time(std::uint32_t send, Duration begin) const {
  if (at_.weather == nullptr) return plan_.ops[send].duration;
  return at_.weather->hold(OpId{send}, at_.iteration, at_.begin + begin);
}

Duration LaneSweep::latency(std::uint32_t recv, Duration end) const {
  if (at_.weather == nullptr) return plan_.ops[recv].duration;
  return at_.weather->latency(OpId{recv}, at_.iteration, at_.begin + end);
}

/// Puts a posted op in the queue for its resources, unless another one's turn comes first.
void LaneSweep::ask(std::uint32_t id) {
  if (!pool_.is_next(OpId{id})) return;
  const Op& op = plan_.ops[id];
  Duration ready = times_[id].ready;
  if (op.kind == OpKind::send) ready = std::max(ready, told_ready(op.match));
  requests_.push({ready, id});
}

void LaneSweep::serve(const Request& request) {
  const std::uint32_t id = request.op;
  const Op& op = plan_.ops[id];
  LONGHAUL_ASSERT(times_[id].end == kPending, "{} is served twice", to_text(plan_, OpId{id}));
  served_ = std::max(served_, request.ready);
  if (ties_ != nullptr) look_for_ties(id);
  Bound bound = op.kind == OpKind::collective ? last_member(op) : bound_of(id);
  const ResourcePool::Free free = pool_.free_for(OpId{id});
  bound.raise(free.at, static_cast<std::uint32_t>(index(free.holder)), BoundKind::resource);
  const bool is_send = op.kind == OpKind::send;
  if (is_send && !latest_hold_.empty()) [[unlikely]]
    look_whether_late(id, bound.until);
  pool_.hold(OpId{id}, run_shared(id, bound), served_);
  if (is_send) work_.push_back(lane_of(op.match));
  work_.push_back(lane_of(id));
  std::vector<OpId> successors;
  pool_.append_successors(OpId{id}, successors);
  for (const OpId successor : successors) {
    const Op& next = plan_.op(successor);
    const bool both = next.kind != OpKind::send || times_[next.match].ready != kPending;
    if (times_[index(successor)].ready != kPending && both)
      ask(static_cast<std::uint32_t>(index(successor)));
  }
}

void LaneSweep::note_ties(std::vector<Tie>& ties) {
  ties_ = &ties;
  last_asked_.resize(plan_.resources.size());
}

void LaneSweep::give_up_at(Duration limit) {
  std::vector<Duration> of_set(plan_.set_begin.size());
  for (const Lane& lane : plan_.lanes) {
    Duration busy{};
    for (const Op& op : std::span{plan_.ops}.subspan(index(lane.first), lane.count)) {
      if (lane.kind == OpKind::compute) busy += op.duration;
      if (lane.kind == OpKind::send) of_set[index(op.resources)] += op.duration;
    }
    latest_start_.push_back(limit - busy);
  }
  latest_hold_.assign(plan_.resources.size(), limit);
  for (std::size_t set = 0; set + 1 < plan_.set_begin.size(); ++set)
    for (std::uint32_t i = plan_.set_begin[set]; i < plan_.set_begin[set + 1]; ++i)
      latest_hold_[index(plan_.set_items[i])] -= of_set[set];
}

void LaneSweep::look_whether_late(std::uint32_t send, Duration begin) {
  for (const ResourceId resource : plan_.resources_of(OpId{send})) {
    if (plan_.resources[index(resource)].capacity != 1) continue;
    Duration& latest = latest_hold_[index(resource)];
    gave_up_ = gave_up_ || begin >= latest;
    latest += plan_.ops[send].duration;
  }
}

/// A request is served in the instant in which it is ready and its lane has come to it.
void LaneSweep::look_for_ties(std::uint32_t id) {
  const LaneId lane = plan_.ops[id].lane;
  for (const ResourceId resource : plan_.resources_of(OpId{id})) {
    LastAsked& last = last_asked_[index(resource)];
    if (last.at == served_ && last.by != lane) ties_->push_back({resource, last.by, lane});
    last = {served_, lane};
  }
}

Duration LaneSweep::run_shared(std::uint32_t id, const Bound& bound) {
  const Op& op = plan_.ops[id];
  if (op.kind == OpKind::send) return run_transfer(id, bound);
  return op.kind == OpKind::collective ? run_collective(op, bound) : run_compute(id, bound);
}

/// Puts a lane at the head of the chain that waits for an op; gives back the head before.
std::uint32_t LaneSweep::exchange_waiter(std::uint32_t id, std::uint32_t lane) {
  const auto head = static_cast<std::uint32_t>(times_[id].start.count());
  times_[id].start = Duration{lane};
  return head;
}

/// When the sender of a posted receive knows that it is: at once, where it depends on nothing and
/// so is posted from the start.
inline Duration LaneSweep::told_ready(std::uint32_t recv) const {
  const Duration ready = times_[recv].ready;
  if (hop_ == Duration::zero()) [[likely]]
    return ready;
  return plan_.ops[recv].after_count > 0 ? ready + hop_ : ready;
}

/// The cause that binds a posted op, its lane and its private resources included.
inline LaneSweep::Bound LaneSweep::bound_of(std::uint32_t id) const {
  const Op& op = plan_.ops[id];
  const LaneState& lane = lanes_[index(op.lane)];
  Bound bound{times_[id].ready, static_cast<std::uint32_t>(index(times_[id].bound_by)),
              times_[id].bound_kind};
  if (op.kind == OpKind::send) {
    bound.raise(told_ready(op.match), op.match, BoundKind::rendezvous);
    const LaneState& receiving = lanes_[lane_of(op.match)];
    bound.raise(receiving.last_start, receiving.last, BoundKind::lane);
  }
  // Asked for in the pool: the lane itself goes on once its last op has started.
  if (shared(op) && op.kind != OpKind::collective)
    bound.raise(lane.last_start, lane.last, BoundKind::lane);
  else
    bound.raise(lane.free, lane.last,
                op.kind == OpKind::send ? BoundKind::resource : BoundKind::lane);
  return bound;
}

/// Gives back until when it holds its resources.
inline Duration LaneSweep::run_compute(std::uint32_t id, const Bound& bound) {
  const Duration end = bound.until + plan_.ops[id].duration;
  if (!latest_start_.empty()) [[unlikely]] {
    Duration& latest = latest_start_[lane_of(id)];
    gave_up_ = gave_up_ || bound.until >= latest;
    latest += plan_.ops[id].duration;
  }
  finish(id, end, end, bound);
  return end;
}

/// Gives back until when it holds its resources.
inline Duration LaneSweep::run_transfer(std::uint32_t send, const Bound& bound) {
  const std::uint32_t recv = plan_.ops[send].match;
  Duration seen = bound.until;  // by the receiver
  Duration hold_end = seen + plan_.ops[send].duration;
  Duration arrives = hold_end + plan_.ops[recv].duration;
  if (!plain_) [[unlikely]] {
    seen += hop_;
    hold_end = bound.until + hold_time(send, bound.until);
    arrives = hop_ == Duration::zero() ? hold_end : seen + hold_time(send, seen);
    arrives += latency(recv, arrives);
  }
  // A receive that was posted last keeps its own cause; otherwise it waited for the send.
  Bound arrival{seen, send, BoundKind::dependency};
  if (bound.kind == BoundKind::rendezvous) {
    arrival.by = static_cast<std::uint32_t>(index(times_[recv].bound_by));
    arrival.kind = times_[recv].bound_kind;
  }
  finish(send, hold_end, hold_end, bound);
  finish(recv, hold_end, arrives, arrival);
  if (!plain_) lanes_[lane_of(recv)].last_start = bound.until;  // no sender waits for what was seen
  return hold_end;
}

/// Fills in the op's times, moves its lane on and wakes the lanes that wait for the op.
inline void LaneSweep::finish(std::uint32_t id, Duration hold_end, Duration end,
                              const Bound& bound) {
  OpTime& time = times_[id];
  auto waiting = static_cast<std::uint32_t>(time.start.count());
  time.start = bound.until;
  time.end = end;
  time.bound_by = OpId{bound.by};
  time.bound_kind = bound.kind;
  LaneState& lane = lanes_[lane_of(id)];
  lane.last_start = bound.until;
  lane.free = hold_end;
  lane.last = id;
  ++lane.next;
  for (; waiting != kNoLane; waiting = lanes_[waiting].next_waiter) work_.push_back(waiting);
  prefetch(id);
}

/// A lane is read and written forwards, but hundreds of lanes take turns, more than the hardware's
/// prefetchers follow: ask for what this lane needs at its next turns (docs/performance.md).
void LaneSweep::prefetch(std::uint32_t id) const {
  constexpr std::uint32_t kAhead = 8;
  __builtin_prefetch(plan_.ops.data() + id + kAhead);
  __builtin_prefetch(times_.data() + id + kAhead, 1);
}

/// Members of a collective, of which `last` was the last to come, tell each other by dissemination:
/// in round k each tells the one 2^k ahead, once it has heard of round k - 1. A member starts when
/// it has heard of all. The exchange is over a hop after the last has started.
void LaneSweep::start_by_words(const Op& last) {
  const std::vector<OpId>& members = plan_.collectives[last.match];
  std::vector<Bound> starts;
  for (const OpId member : members)
    starts.push_back(bound_of(static_cast<std::uint32_t>(index(member))));
  for (std::size_t ahead = 1; ahead < members.size(); ahead *= 2) {
    const std::vector<Bound> before = starts;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t from = (i + members.size() - ahead) % members.size();
      starts[i].raise(before[from].until + hop_, static_cast<std::uint32_t>(index(members[from])),
                      BoundKind::rendezvous);
    }
  }
  const Duration exchanged = std::ranges::max_element(starts, {}, &Bound::until)->until + hop_;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto id = static_cast<std::uint32_t>(index(members[i]));
    const Duration end =
        std::max(exchanged, starts[i].until + ring_time(members[i], starts[i].until));
    finish(id, end, end, starts[i]);
    if (lane_of(id) != index(last.lane)) work_.push_back(lane_of(id));
  }
}

}  // namespace longhaul::sim
