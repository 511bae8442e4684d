#include "engine/recv_lanes.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul::engine {

RecvLanes::RecvLanes(EngineState& state)
    : state_{state},
      lanes_{make_cursors<ReceiveCursor>(state.plan, state.host_ranks.self(), OpKind::recv)} {}

void RecvLanes::begin_iteration() {
  counted_wrong_.clear();
  for (ReceiveCursor& lane : lanes_) {
    lane.rewind(state_.plan);
    lane.open = 0;
  }
}

bool RecvLanes::advance() {
  bool moved = false;
  for (ReceiveCursor& lane : lanes_) {
    while (lane.next != lane.end && lane.open < kWindow && state_.ops.is_ready(OpId{lane.next})) {
      post(lane, OpId{lane.next++});
      moved = true;
    }
  }
  return moved;
}

void RecvLanes::post(ReceiveCursor& lane, OpId recv) {
  ++lane.open;
  if (state_.fault_op == recv && state_.options.fault->kind == FaultKind::no_receive) return;
  state_.ops.posted(recv);
  const Op& op = state_.plan.op(recv);
  const OpId send{op.match};
  MessageInFlight& flight = flight_of(kNone<OpId>);
  flight.op = recv;
  flight.lane = &lane;
  flight.verdict = Payloads::Verdict::right;
  state_.expect(state_.transport.receive(op.peer, state_.tags.header(op.peer, send),
                                         std::as_writable_bytes(std::span{&flight.header, 1})),
                Role::header_received, recv);
  if (!state_.needs_go_ahead(send)) return;
  flight.go_ahead_lag_ns = state_.ops.inputs(recv).lag().count();
  state_.expect(state_.transport.send(op.peer, state_.tags.go_ahead(op.peer, send),
                                      std::as_bytes(std::span{&flight.go_ahead_lag_ns, 1})),
                Role::go_ahead_sent, recv);
  state_.transport.ring_doorbell(op.peer);
}

void RecvLanes::receive_payload(MessageInFlight& flight) {
  const Op& op = state_.plan.op(flight.op);
  const OpId send{op.match};
  cuda::LanePace pace{flight.lane->lane, {}, {}};
  if (state_.transport.holds_lanes()) {
    pace.from = flight.start;
    if (state_.emulates()) pace.hold = state_.conditions.hold(send, flight.start);
  }
  flight.payload = state_.data_plane.room(flight.op);
  state_.posted = flight.op;
  state_.expect(state_.transport.receive_payload(op.peer, state_.tags.payload(op.peer, send),
                                                 flight.payload.bytes, pace),
                Role::payload_received, flight.op);
}

void RecvLanes::header_came(OpId recv, std::size_t size, TimePoint at) {
  if (state_.fault_op == recv) inject_fault(*state_.options.fault);
  MessageInFlight& flight = flight_of(recv);
  flight.start = at;
  ++state_.open_transfers;
  ShadowTime causes = state_.ops.inputs(recv);
  causes.raise(at, Duration{flight.header.lag_ns});
  state_.ops.set_lag(recv, causes.lag());
  const OpId send{state_.plan.op(recv).match};
  const bool right =
      size == kHeaderBytes &&
      same_message(flight.header, message_header(state_.plan, send, state_.run, state_.iteration));
  if (!right) {
    flight.verdict = Payloads::Verdict::wrong_message;
    flight.found = flight.header.payload;
  }
  // A receive that was posted last keeps its own cause; otherwise it waited for the send.
  const bool late = right && flight.header.waited_for_receiver != 0;
  state_.ops.started(recv, flight.start,
                     late ? state_.ops.ready_cause(recv) : Cause{at, send, BoundKind::dependency});
  state_.message_holds(send, flight.start);
  receive_payload(flight);
}

void RecvLanes::payload_came(OpId recv, const comm::Completion& completion, TimePoint at) {
  MessageInFlight& flight = flight_of(recv);
  flight.over = completion.over;
  flight.transferred = std::min(completion.transferred, at);
  --flight.lane->open;
  check(flight, completion.size_bytes);
  finish_transfer(flight, at);
}

void RecvLanes::check(MessageInFlight& flight, std::size_t size) const {
  flight.payload.bytes = flight.payload.bytes.first(std::min(size, flight.payload.bytes.size()));
  PayloadId found;
  const auto verdict = state_.data_plane.check(flight.op, flight.payload.bytes, found);
  if (verdict == Payloads::Verdict::right) return;
  if (flight.verdict == Payloads::Verdict::right) flight.verdict = verdict;
  flight.found = found;
}

/// Each message counts once, whether its header, its payload or both are wrong.
void RecvLanes::count(const MessageInFlight& flight) {
  if (flight.verdict != Payloads::Verdict::right)
    return count_wrong(
        {flight.op, state_.iteration, flight.verdict, flight.header.came_wrong != 0, flight.found});
  ++state_.checks.messages;
  ++state_.checks.of_leg[index(state_.plan.op(flight.op).leg)];
}

void RecvLanes::count_wrong(const WrongMessage& wrong) {
  static constexpr std::size_t kNamed = 8;  // of an iteration: more say nothing more
  const bool other = wrong.verdict == Payloads::Verdict::wrong_message;
  ++(other ? state_.checks.mixed_up : state_.checks.corrupted);
  counted_wrong_.insert(wrong.recv);
  if (state_.wrong.size() < kNamed) state_.wrong.push_back(wrong);
}

void RecvLanes::found_late(const LateVerdict& late) {
  if (counted_wrong_.contains(late.recv)) return;  // its header told already
  --state_.checks.messages;
  --state_.checks.of_leg[index(state_.plan.op(late.recv).leg)];
  count_wrong({late.recv, state_.iteration, late.verdict, false, late.found});
}

/// It stays here, or a relay's send takes it on as it came.
void RecvLanes::pass_on(MessageInFlight& flight) {
  if (state_.relays.forwards.send_after(flight.op) == kNone<OpId>)
    return state_.data_plane.deliver(flight.op, std::move(flight.payload));
  state_.relays.keep(flight.op,
                     {std::move(flight.payload), flight.verdict != Payloads::Verdict::right});
}

/// The payload is here: what the real transfer has used counts against the nominal time.
void RecvLanes::finish_transfer(MessageInFlight& flight, TimePoint at) {
  const OpId recv = flight.op;
  const Duration used = std::max(Duration::zero(), flight.transferred - flight.start);
  const TimePoint held = flight.over;
  count(flight);
  pass_on(flight);
  flight.op = kNone<OpId>;
  --state_.open_transfers;
  ++state_.transfers.transfers;
  state_.transfers.total += used;
  state_.transfers.longest = std::max(state_.transfers.longest, used);
  if (!state_.emulates()) return state_.ops.ended(recv, at, at);
  const OpId send{state_.plan.op(recv).match};
  const TimePoint over =
      held != kNever ? std::min(held, at)
                     : std::max(at, flight.start + state_.conditions.hold(send, flight.start));
  const TimePoint due = over + state_.conditions.latency(recv, over);
  if (due <= at) return state_.ops.ended(recv, at, due);
  state_.timers.add(due, recv);
  state_.ops.will_end(recv, due);
}

void RecvLanes::arrived(OpId recv, TimePoint due, TimePoint at) { state_.ops.ended(recv, at, due); }

RecvLanes::MessageInFlight& RecvLanes::flight_of(OpId op) {
  for (auto& flight : flights_)
    if (flight->op == op) return *flight;
  LONGHAUL_ASSERT(op == kNone<OpId>, "op {} is not posted", index(op));
  flights_.push_back(std::make_unique<MessageInFlight>());
  return *flights_.back();
}

}  // namespace longhaul::engine
