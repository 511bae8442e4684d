#include "engine/send_lanes.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul {

SendLanes::SendLanes(EngineState& core) : core_{core} {
  for (std::size_t i = 0; i < core_.plan.lanes.size(); ++i) {
    const Lane& lane = core_.plan.lanes[i];
    if (lane.kind != OpKind::send || lane.rank != core_.host_ranks.self() || lane.count == 0)
      continue;
    LaneState state;
    state.lane = LaneId{static_cast<std::uint32_t>(i)};
    lanes_.push_back(state);
  }
}

void SendLanes::begin_iteration() {
  for (LaneState& state : lanes_) {
    const Lane& lane = core_.plan.lanes[index(state.lane)];
    state.next = static_cast<std::uint32_t>(index(lane.first));
    state.end = state.next + lane.count;
    state.wait = Wait::inputs;
    state.last = kNone<OpId>;
    expect_go_ahead(state);
  }
}

void SendLanes::expect_go_ahead(LaneState& lane) {
  lane.has_go_ahead = false;
  if (lane.next == lane.end || !core_.needs_go_ahead(OpId{lane.next})) return;
  const OpId send{lane.next};
  const Op& op = core_.plan.op(send);
  core_.expect(core_.transport.receive(op.peer, core_.tags.go_ahead(core_.host_ranks.self(), send),
                                       std::as_writable_bytes(std::span{&lane.go_ahead_word, 1})),
               Role::go_ahead_received, send);
}

void SendLanes::go_ahead(OpId send, TimePoint at) {
  for (LaneState& lane : lanes_) {
    if (lane.next != index(send)) continue;
    lane.has_go_ahead = true;
    lane.go_ahead_at = at;
  }
}

bool SendLanes::advance(TimePoint at) {
  bool moved = false;
  for (LaneState& lane : lanes_)
    while (lane.next != lane.end && advance_lane(lane, at)) moved = true;
  return moved;
}

/// Takes the lane's head one step on, if it can.
bool SendLanes::advance_lane(LaneState& lane, TimePoint at) {
  const OpId send{lane.next};
  switch (lane.wait) {
    case Wait::inputs:
      if (!core_.ops.is_ready(send)) return false;
      lane.cause = core_.ops.ready_cause(send);
      lane.ready = lane.cause.until;
      if (lane.last != kNone<OpId> && lane.last_start > lane.cause.until)
        lane.cause.raise(lane.last_start, lane.last, BoundKind::lane);
      lane.wait = core_.needs_go_ahead(send) ? Wait::go_ahead : Wait::link;
      if (lane.wait == Wait::link && core_.emulates()) core_.links->request(send, lane.ready);
      return true;
    case Wait::go_ahead:
      if (!lane.has_go_ahead) return false;
      lane.cause.raise(lane.go_ahead_at, OpId{core_.plan.op(send).match}, BoundKind::rendezvous);
      lane.ready = std::max(lane.ready, lane.go_ahead_at);
      lane.wait = Wait::link;
      if (core_.emulates()) core_.links->request(send, lane.ready);
      return true;
    case Wait::link: return wait_for_link(lane, at);
  }
  return false;
}

bool SendLanes::wait_for_link(LaneState& lane, TimePoint at) {
  const OpId send{lane.next};
  if (core_.emulates()) {
    const auto grant = core_.links->take(send, lane.cause.until, at);
    if (!grant) return false;
    if (grant->free > lane.cause.until)
      lane.cause.raise(grant->free, grant->holder, BoundKind::resource);
  }
  start(lane, at);
  lane.last = send;
  lane.last_start = at;
  ++lane.next;
  lane.wait = Wait::inputs;
  expect_go_ahead(lane);
  return true;
}

void SendLanes::start(LaneState& lane, TimePoint at) {
  const OpId send{lane.next};
  MessageInFlight& flight = new_flight(send);
  load(flight);
  flight.header.waited_for_receiver = lane.cause.kind == BoundKind::rendezvous ? 1 : 0;
  core_.ops.started(send, at, lane.cause);
  const int times = core_.struck == send ? hurt(flight) : 1;

  const TimePoint begin = core_.begin_at(lane.cause, at);
  const Duration nominal = core_.emulates() ? core_.conditions.hold(send, begin) : Duration::zero();
  const bool by_transport = core_.transport.holds_lanes() && times > 0;
  flight.unsent = 2 * times;
  for (int i = 0; i < times; ++i)
    post(flight, by_transport && i == 0 ? LanePace{lane.lane, nominal, begin}
                                        : LanePace{lane.lane, {}, {}});
  core_.transport.ring(core_.plan.op(send).peer);

  if (nominal > Duration::zero()) core_.conditions.going_on(send, begin);
  hold(flight, begin, by_transport ? Duration::zero() : nominal);
  if (times == 0) finish_if_over(flight, at, at);
}

void SendLanes::post(const MessageInFlight& flight, const LanePace& pace) {
  const OpId send = flight.op;
  const Rank peer = core_.plan.op(send).peer, self = core_.host_ranks.self();
  core_.expect(core_.transport.send(peer, core_.tags.header(self, send),
                                    std::as_bytes(std::span{&flight.header, 1})),
               Role::header_sent, send);
  core_.posted = send;
  core_.expect(core_.transport.send_payload(peer, core_.tags.payload(self, send),
                                            flight.payload.bytes, pace),
               Role::payload_sent, send);
}

void SendLanes::hold(MessageInFlight& flight, TimePoint begin, Duration nominal) {
  flight.over = kNever;
  flight.holding = nominal > Duration::zero();
  if (flight.holding) core_.timers.add(begin + nominal, flight.op);
}

/// Makes the payload, or takes on the one that a relay received.
void SendLanes::load(MessageInFlight& flight) {
  const Op& op = core_.plan.op(flight.op);
  flight.header = message_header(core_.plan, flight.op, core_.run, core_.iteration);
  if (core_.relays.forwards.recv_before(flight.op) != kNone<OpId>) {
    RelayBuffers::Kept kept = core_.relays.take(flight.op);
    flight.payload = std::move(kept.payload);
    flight.header.came_wrong = kept.came_wrong ? 1 : 0;
    ++core_.checks.relayed;
    core_.checks.relayed_bytes += op.size.count();
  } else {
    flight.payload = core_.data_plane.make(flight.op);
  }
  flight.header.payload_bytes = static_cast<std::uint32_t>(flight.payload.bytes.size());
}

/// The fault of this run strikes this message; how often it is sent then.
int SendLanes::hurt(MessageInFlight& flight) const {
  const bool relays = core_.relays.forwards.recv_before(flight.op) != kNone<OpId>;
  switch (core_.options.fault->kind) {
    case FaultKind::kill:
    case FaultKind::freeze: strike(*core_.options.fault); return 1;
    case FaultKind::lose: return 0;
    case FaultKind::send_twice: return 2;
    default: break;
  }
  core_.data_plane.spoil(flight.op, core_.options.fault->kind, flight.payload);
  // A relay that takes one payload for another says what it was to send.
  if (core_.options.fault->kind == FaultKind::mix_up && !relays) ++flight.header.payload.microbatch;
  return 1;
}

void SendLanes::sent(OpId send, TimePoint at) {
  MessageInFlight& flight = flight_of(send);
  --flight.unsent;
  finish_if_over(flight, std::min(flight.over, at), at);
}

void SendLanes::payload_sent(OpId send, const Completion& completion, TimePoint at) {
  if (flight_of(send).over == kNever) flight_of(send).over = completion.over;
  sent(send, at);
}

void SendLanes::hold_over(OpId send, TimePoint due, TimePoint at) {
  MessageInFlight& flight = flight_of(send);
  flight.holding = false;
  finish_if_over(flight, due, at);
}

void SendLanes::finish_if_over(MessageInFlight& flight, TimePoint due, TimePoint at) {
  if (flight.unsent > 0 || flight.holding) return;
  const OpId send = flight.op;
  flight.op = kNone<OpId>;
  flight.payload = {};
  core_.conditions.over(send);
  core_.ops.ended(send, at, due);
  if (core_.emulates()) core_.links->release(send, due);
}

SendLanes::MessageInFlight& SendLanes::new_flight(OpId op) {
  for (auto& flight : flights_) {
    if (flight->op != kNone<OpId>) continue;
    flight->op = op;
    return *flight;
  }
  flights_.push_back(std::make_unique<MessageInFlight>());
  flights_.back()->op = op;
  return *flights_.back();
}

SendLanes::MessageInFlight& SendLanes::flight_of(OpId op) {
  for (auto& flight : flights_)
    if (flight->op == op) return *flight;
  LONGHAUL_ASSERT(false, "op {} is not on its way", index(op));
}

}  // namespace longhaul
