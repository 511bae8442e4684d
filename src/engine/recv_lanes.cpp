#include "engine/recv_lanes.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul {

RecvLanes::RecvLanes(EngineState& core) : core_{core} {
  for (std::size_t i = 0; i < core_.plan.lanes.size(); ++i) {
    const Lane& lane = core_.plan.lanes[i];
    if (lane.kind != OpKind::recv || lane.rank != core_.host_ranks.self() || lane.count == 0)
      continue;
    LaneState state;
    state.lane = LaneId{static_cast<std::uint32_t>(i)};
    lanes_.push_back(state);
  }
}

void RecvLanes::begin_iteration() {
  counted_wrong_.clear();
  for (LaneState& state : lanes_) {
    const Lane& lane = core_.plan.lanes[index(state.lane)];
    state.next = static_cast<std::uint32_t>(index(lane.first));
    state.end = state.next + lane.count;
    state.open = 0;
  }
}

bool RecvLanes::advance() {
  bool moved = false;
  for (LaneState& lane : lanes_) {
    while (lane.next != lane.end && lane.open < kWindow && core_.ops.is_ready(OpId{lane.next})) {
      post(lane, OpId{lane.next++});
      moved = true;
    }
  }
  return moved;
}

void RecvLanes::post(LaneState& lane, OpId recv) {
  ++lane.open;
  if (core_.struck == recv && core_.options.fault->kind == FaultKind::no_receive) return;
  core_.ops.posted(recv);
  const Op& op = core_.plan.op(recv);
  const OpId send{op.match};
  MessageInFlight& flight = flight_of(kNone<OpId>);
  flight.op = recv;
  flight.lane = &lane;
  flight.started = flight.has_header = flight.has_payload = false;
  flight.verdict = Payloads::Verdict::right;
  flight.payload = core_.data_plane.room(recv);
  core_.expect(core_.transport.receive(op.peer, core_.tags.header(op.peer, send),
                                       std::as_writable_bytes(std::span{&flight.header, 1})),
               Role::header_received, recv);
  if (!core_.transport.holds_lanes()) receive_payload(flight, {lane.lane, {}, {}});
  if (!core_.needs_go_ahead(send)) return;
  static constexpr std::int64_t kWord = 0;
  core_.expect(core_.transport.send(op.peer, core_.tags.go_ahead(op.peer, send),
                                    std::as_bytes(std::span{&kWord, 1})),
               Role::go_ahead_sent, recv);
  core_.transport.ring(op.peer);
}

void RecvLanes::receive_payload(const MessageInFlight& flight, const LanePace& pace) {
  const Op& op = core_.plan.op(flight.op);
  core_.posted = flight.op;
  core_.expect(core_.transport.receive_payload(op.peer, core_.tags.payload(op.peer, OpId{op.match}),
                                               flight.payload.bytes, pace),
               Role::payload_received, flight.op);
}

void RecvLanes::start(MessageInFlight& flight, TimePoint at) {
  if (flight.started) return;
  flight.started = true;
  flight.start = at;
  ++core_.open_transfers;
}

void RecvLanes::header_came(OpId recv, std::size_t size, TimePoint at) {
  MessageInFlight& flight = flight_of(recv);
  flight.has_header = true;
  start(flight, at);
  const OpId send{core_.plan.op(recv).match};
  const bool right =
      size == kHeaderBytes &&
      same_message(flight.header, message_header(core_.plan, send, core_.run, core_.iteration));
  if (!right) {
    flight.verdict = Payloads::Verdict::wrong_message;
    flight.found = flight.header.payload;
  }
  // A receive that was posted last keeps its own cause; otherwise it waited for the send.
  const bool late = right && flight.header.waited_for_receiver != 0;
  core_.ops.started(recv, flight.start,
                    late ? core_.ops.ready_cause(recv) : Cause{at, send, BoundKind::dependency});
  if (core_.transport.holds_lanes()) {
    const Duration hold =
        core_.emulates() ? core_.conditions.hold(send, flight.start) : Duration::zero();
    receive_payload(flight, {flight.lane->lane, hold, flight.start});
  }
  if (flight.has_payload) finish_transfer(flight, at);
}

void RecvLanes::payload_came(OpId recv, const Completion& completion, TimePoint at) {
  MessageInFlight& flight = flight_of(recv);
  flight.has_payload = true;
  flight.over = completion.over;
  flight.transferred = std::min(completion.transferred, at);
  --flight.lane->open;
  start(flight, at);
  check(flight, completion.size_bytes);
  if (flight.has_header) finish_transfer(flight, at);
}

void RecvLanes::check(MessageInFlight& flight, std::size_t size) const {
  flight.payload.bytes = flight.payload.bytes.first(std::min(size, flight.payload.bytes.size()));
  PayloadId found;
  const auto verdict = core_.data_plane.check(flight.op, flight.payload.bytes, found);
  if (verdict == Payloads::Verdict::right) return;
  if (flight.verdict == Payloads::Verdict::right) flight.verdict = verdict;
  flight.found = found;
}

/// Each message counts once, whether its header, its payload or both are wrong.
void RecvLanes::count(const MessageInFlight& flight) {
  if (flight.verdict != Payloads::Verdict::right)
    return count_wrong(
        {flight.op, core_.iteration, flight.verdict, flight.header.came_wrong != 0, flight.found});
  ++core_.checks.messages;
  ++core_.checks.of_leg[index(core_.plan.op(flight.op).leg)];
}

void RecvLanes::count_wrong(const WrongMessage& wrong) {
  static constexpr std::size_t kNamed = 8;  // of an iteration: more say nothing more
  const bool other = wrong.verdict == Payloads::Verdict::wrong_message;
  ++(other ? core_.checks.mixed_up : core_.checks.corrupted);
  counted_wrong_.insert(wrong.recv);
  if (core_.wrong.size() < kNamed) core_.wrong.push_back(wrong);
}

void RecvLanes::found_late(const LateVerdict& late) {
  if (counted_wrong_.contains(late.recv)) return;  // its header told already
  --core_.checks.messages;
  --core_.checks.of_leg[index(core_.plan.op(late.recv).leg)];
  count_wrong({late.recv, core_.iteration, late.verdict, false, late.found});
}

/// It stays here, or a relay's send takes it on as it came.
void RecvLanes::pass_on(MessageInFlight& flight) {
  if (core_.relays.forwards.send_behind(flight.op) == kNone<OpId>)
    return core_.data_plane.deliver(flight.op, std::move(flight.payload));
  core_.relays.keep(flight.op,
                    {std::move(flight.payload), flight.verdict != Payloads::Verdict::right});
}

/// Header and payload are here: what the real transfer has used counts against the nominal time.
void RecvLanes::finish_transfer(MessageInFlight& flight, TimePoint at) {
  const OpId recv = flight.op;
  const Duration used = std::max(Duration::zero(), flight.transferred - flight.start);
  const TimePoint held = flight.over;
  count(flight);
  pass_on(flight);
  flight.op = kNone<OpId>;
  --core_.open_transfers;
  ++core_.transfers.transfers;
  core_.transfers.total += used;
  core_.transfers.longest = std::max(core_.transfers.longest, used);
  if (!core_.emulates()) return core_.ops.ended(recv, at, at);
  const OpId send{core_.plan.op(recv).match};
  const TimePoint over =
      held != kNever ? std::min(held, at)
                     : std::max(at, flight.start + core_.conditions.hold(send, flight.start));
  const TimePoint due = over + core_.conditions.latency(recv, over);
  if (due <= at) return core_.ops.ended(recv, at, due);
  core_.timers.add(due, recv);
  core_.ops.will_end(recv, due);
}

void RecvLanes::arrived(OpId recv, TimePoint due, TimePoint at) { core_.ops.ended(recv, at, due); }

RecvLanes::MessageInFlight& RecvLanes::flight_of(OpId op) {
  for (auto& flight : flights_)
    if (flight->op == op) return *flight;
  LONGHAUL_ASSERT(op == kNone<OpId>, "op {} is not posted", index(op));
  flights_.push_back(std::make_unique<MessageInFlight>());
  return *flights_.back();
}

}  // namespace longhaul
