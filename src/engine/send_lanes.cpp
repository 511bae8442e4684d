#include "engine/send_lanes.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul::engine {

SendLanes::SendLanes(EngineState& state)
    : state_{state},
      lanes_{make_cursors<SendCursor>(state.plan, state.host_ranks.self(), OpKind::send)} {}

void SendLanes::begin_iteration() {
  for (SendCursor& lane : lanes_) {
    lane.rewind(state_.plan);
    lane.is_ready = false;
    lane.asked.clear();
    lane.last = kNone<OpId>;
    expect_go_ahead(lane);
  }
}

void SendLanes::expect_go_ahead(SendCursor& lane) {
  lane.has_go_ahead = false;
  if (lane.next == lane.end || !state_.needs_go_ahead(OpId{lane.next})) return;
  const OpId send{lane.next};
  const Op& op = state_.plan.op(send);
  state_.expect(
      state_.transport.receive(op.peer, state_.tags.go_ahead(state_.host_ranks.self(), send),
                               std::as_writable_bytes(std::span{&lane.go_ahead_word, 1})),
      Role::go_ahead_received, send);
}

void SendLanes::go_ahead(OpId send, TimePoint at) {
  for (SendCursor& lane : lanes_) {
    if (lane.next != index(send)) continue;
    lane.has_go_ahead = true;
    lane.go_ahead_at = {at, at + Duration{lane.go_ahead_word}};
  }
}

bool SendLanes::advance(TimePoint at) {
  bool moved = false;
  for (SendCursor& lane : lanes_) {
    while (lane.next != lane.end && ask_next(lane, at)) moved = true;
    while (!lane.asked.empty() && start_first(lane, at)) moved = true;
  }
  return moved;
}

/// Asks for the link of the lane's head, if it is ready and its receiver too. By their readiness
/// links serve, whatever its lane did.
bool SendLanes::ask_next(SendCursor& lane, TimePoint at) {
  const OpId send{lane.next};
  if (!lane.is_ready) {
    if (!state_.ops.is_ready(send)) return false;
    lane.is_ready = true;
    lane.cause = state_.ops.ready_cause(send);
  }
  ShadowTime causes = state_.ops.inputs(send);
  if (state_.needs_go_ahead(send)) {
    if (!lane.has_go_ahead) return false;
    lane.cause.raise(lane.go_ahead_at.seen, OpId{state_.plan.op(send).match},
                     BoundKind::rendezvous);
    causes.raise(lane.go_ahead_at);
  }
  if (state_.emulates()) state_.links->request(send, lane.cause.until, at);
  lane.asked.push_back({send, lane.cause, causes});
  ++lane.next;
  lane.is_ready = false;
  expect_go_ahead(lane);
  return true;
}

/// Starts the first of those that have asked, if it has its link.
bool SendLanes::start_first(SendCursor& lane, TimePoint at) {
  Asked& first = lane.asked.front();
  if (is_full(lane)) return false;
  if (lane.last != kNone<OpId>) first.cause.raise(lane.last_start.seen, lane.last, BoundKind::lane);
  if (state_.emulates()) {
    const auto grant = state_.links->take(first.op, first.cause.until, at);
    if (!grant) return false;
    if (grant->free > first.cause.until)
      first.cause.raise(grant->free, grant->holder, BoundKind::resource);
    first.causes.raise(grant->let_go);
    // The clock was read before the grant was seen: no hold begins before the one that ended.
    at = std::max(at, grant->let_go.seen);
  }
  if (lane.last != kNone<OpId>) first.causes.raise(lane.last_start);
  start(lane, first, at);
  lane.last = first.op;
  lane.last_start = {at, at + first.causes.lag()};
  lane.asked.pop_front();
  return true;
}

/// Large payloads leave one after the other: no more of them take room than keep the way busy.
bool SendLanes::is_full(const SendCursor& lane) const {
  return std::ranges::count_if(flights_, [&](const auto& flight) {
           return flight->op != kNone<OpId> && flight->unsent > 0 &&
                  flight->payload.bytes.size() > kMadeAtOnce &&
                  state_.plan.op(flight->op).lane == lane.lane;
         }) >= kMostUnsent;
}

void SendLanes::start(const SendCursor& lane, const Asked& asked, TimePoint at) {
  const OpId send = asked.op;
  MessageInFlight& flight = new_flight(send);
  load(flight);
  flight.lag = asked.causes.lag();
  flight.header.lag_ns = flight.lag.count();
  flight.header.waited_for_receiver = asked.cause.kind == BoundKind::rendezvous ? 1 : 0;
  state_.ops.started(send, at, asked.cause);
  const int times = state_.fault_op == send ? apply_fault(flight) : 1;

  const Duration usual = state_.plan.op(send).duration;
  const TimePoint begin = state_.begin_at(asked.cause, at, usual);
  const Duration nominal =
      state_.emulates() ? state_.conditions.hold(send, begin) : Duration::zero();
  const bool by_transport = state_.transport.holds_lanes() && times > 0;
  flight.unsent = 2 * times;
  for (int i = 0; i < times; ++i)
    post(flight, by_transport && i == 0 ? cuda::LanePace{lane.lane, nominal, begin}
                                        : cuda::LanePace{lane.lane, {}, {}});
  state_.transport.ring_doorbell(state_.plan.op(send).peer);

  flight.end = {};
  flight.credit = nominal > Duration::zero() ? at - begin : Duration::zero();
  if (nominal > Duration::zero()) {
    state_.conditions.going_on(send, begin);
    state_.message_holds(send, begin);
    state_.credit.add(flight.credit);
  }
  hold(flight, begin, by_transport ? Duration::zero() : nominal);
  if (times == 0) finish_if_over(flight, at, at);
}

void SendLanes::post(const MessageInFlight& flight, const cuda::LanePace& pace) {
  const OpId send = flight.op;
  const Rank peer = state_.plan.op(send).peer, self = state_.host_ranks.self();
  state_.expect(state_.transport.send(peer, state_.tags.header(self, send),
                                      std::as_bytes(std::span{&flight.header, 1})),
                Role::header_sent, send);
  state_.posted = send;
  state_.expect(state_.transport.send_payload(peer, state_.tags.payload(self, send),
                                              flight.payload.bytes, pace),
                Role::payload_sent, send);
}

void SendLanes::hold(MessageInFlight& flight, TimePoint begin, Duration nominal) {
  flight.over = kNever;
  flight.holding = nominal > Duration::zero();
  if (flight.holding) state_.timers.add(begin + nominal, flight.op);
}

/// Makes the payload, or takes on the one that a relay received.
void SendLanes::load(MessageInFlight& flight) {
  const Op& op = state_.plan.op(flight.op);
  flight.header = message_header(state_.plan, flight.op, state_.run, state_.iteration);
  if (state_.relays.forwards.recv_before(flight.op) != kNone<OpId>) {
    RelayBuffers::Kept kept = state_.relays.take(flight.op);
    flight.payload = std::move(kept.payload);
    flight.header.came_wrong = kept.came_wrong ? 1 : 0;
    ++state_.checks.relayed;
    state_.checks.relayed_bytes += op.size.count();
  } else {
    flight.payload = state_.data_plane.make(flight.op);
  }
  flight.header.payload_bytes = static_cast<std::uint32_t>(flight.payload.bytes.size());
}

/// Applies the fault of this run to this message; returns how often to send it.
int SendLanes::apply_fault(MessageInFlight& flight) const {
  const bool relays = state_.relays.forwards.recv_before(flight.op) != kNone<OpId>;
  switch (state_.options.fault->kind) {
    case FaultKind::kill:
    case FaultKind::freeze: inject_fault(*state_.options.fault); return 1;
    case FaultKind::lose: return 0;
    case FaultKind::send_twice: return 2;
    default: break;
  }
  state_.data_plane.corrupt(flight.op, state_.options.fault->kind, flight.payload);
  // A relay that takes one payload for another says what it was to send.
  if (state_.options.fault->kind == FaultKind::mislabel && !relays)
    ++flight.header.payload.microbatch;
  return 1;
}

void SendLanes::sent(OpId send, TimePoint at) {
  MessageInFlight& flight = flight_of(send);
  --flight.unsent;
  flight.end.raise(at, flight.lag);
  finish_if_over(flight, std::min(flight.over, at), at);
}

void SendLanes::payload_sent(OpId send, const comm::Completion& completion, TimePoint at) {
  MessageInFlight& flight = flight_of(send);
  if (flight.over == kNever) flight.over = completion.over;
  if (completion.over != kNever) flight.end.raise(at, flight.lag + flight.credit);
  sent(send, at);
}

void SendLanes::hold_over(OpId send, TimePoint due, TimePoint at) {
  MessageInFlight& flight = flight_of(send);
  flight.holding = false;
  flight.end.raise(at, flight.lag + flight.credit);
  finish_if_over(flight, due, at);
}

void SendLanes::finish_if_over(MessageInFlight& flight, TimePoint due, TimePoint at) {
  if (flight.unsent > 0 || flight.holding) return;
  const OpId send = flight.op;
  flight.op = kNone<OpId>;
  flight.payload = {};
  state_.conditions.over(send);
  flight.end.raise(at, flight.lag);  // also where nothing was sent or held
  state_.ops.set_lag(send, flight.end.lag());
  state_.ops.ended(send, at, due);
  if (state_.emulates()) state_.links->release(send, due, flight.end, at);
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

}  // namespace longhaul::engine
