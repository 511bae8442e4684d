// Messages: of each the receiver says, where it has to, that it is ready, and the sender that it
// starts, or either that it does not run. So nothing is left open on any rank.
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "engine/events/event_player.hpp"

namespace longhaul::engine {

void EventPlayer::expect(comm::RequestId request, Role role, EventMessage& message) {
  expected_[request] = {role, &message};
  ++message.on_the_way;
}

/// Its lane has come to it: from now on it hears of its other side.
void EventPlayer::open_message(OpInstance& op) {
  EventMessage& message = messages_.open(op);
  const Op& own = plan_.op(op.op);
  message.from_this_host = state_.host_ranks.is_local(own.peer);
  message.counts = message.from_this_host && counts_word(own);
  if (own.kind == OpKind::recv) {
    const OpId send{own.match};
    const int tag = state_.tags.header(own.peer, send, op.iteration);
    expect(state_.transport.receive(own.peer, tag,
                                    std::as_writable_bytes(std::span{&message.header, 1})),
           Role::header_in, message);
  } else if (facts_.needs_go_ahead(own, plan_)) {
    const int tag = state_.tags.go_ahead(state_.host_ranks.self(), op.op, op.iteration);
    expect(state_.transport.receive(own.peer, tag,
                                    std::as_writable_bytes(std::span{&message.word, 1})),
           Role::word_in, message);
  }
}

/// A receive says that it is ready to a send that no source may have drawn yet, and that looks for
/// the word when one does: such words are not counted.
bool EventPlayer::counts_word(const Op& own) const {
  const OpId send{own.kind == OpKind::send ? plan_.op(OpId{own.match}).match : own.match};
  return !facts_.is_sourced(plan_.op(send).lane);
}

void EventPlayer::tell_receiver(OpInstance& op, Duration starts_in, bool skipped) {
  EventMessage& message = *op.message;
  if (std::exchange(message.told, true)) return;
  const Rank self = state_.host_ranks.self(), peer = plan_.op(op.op).peer;
  message.header.message =
      message_header(plan_, op.op, state_.run, first_iteration_ + op.iteration);
  message.header.starts_in_ns = starts_in.count();
  message.header.skipped = skipped ? 1 : 0;
  if (const plan::Draw* const drawn = draw_of(op.op); drawn != nullptr && drawn->takes)
    message.header.takes_ns = drawn->takes->count();
  message.header.message.waited_for_receiver = op.cause.kind == BoundKind::rendezvous ? 1 : 0;
  message.header.message.came_wrong = state_.relays.came_wrong(op.op) ? 1 : 0;
  ++message.unsent;
  if (has_sources_ && state_.host_ranks.is_local(peer)) board_.count_sent();
  expect(state_.transport.send(peer, state_.tags.header(self, op.op, op.iteration),
                               std::as_bytes(std::span{&message.header, 1})),
         Role::header_out, message);
  state_.transport.ring_doorbell(peer);
}

void EventPlayer::tell_sender(OpInstance& op, bool skipped, TimePoint at) {
  EventMessage& message = *op.message;
  if (std::exchange(message.told, true)) return;
  const Op& own = plan_.op(op.op);
  if (!skipped) message.word.ready_ago_ns = (at - op.time.ready).count();
  message.word.lane_ago_ns = (at - lane_of(op.op).last_start).count();
  message.word.said_at_ns = at.count();
  message.word.skipped = skipped ? 1 : 0;
  if (has_sources_ && state_.host_ranks.is_local(own.peer) && counts_word(own)) board_.count_sent();
  expect(
      state_.transport.send(own.peer, state_.tags.go_ahead(own.peer, OpId{own.match}, op.iteration),
                            std::as_bytes(std::span{&message.word, 1})),
      Role::word_out, message);
  state_.transport.ring_doorbell(own.peer);
}

/// `strikes`: the fault of the run is of this one.
void EventPlayer::send_payload(OpInstance& op, bool strikes, TimePoint at) {
  EventMessage& message = *op.message;
  const Rank self = state_.host_ranks.self(), peer = plan_.op(op.op).peer;
  message.payload = payload_of(op);
  if (strikes && state_.options.fault->kind == FaultKind::corrupt)
    state_.data_plane.corrupt(op.op, FaultKind::corrupt, message.payload);
  const Duration usual = duration_of(op.op, op.iteration);
  const TimePoint begin = state_.begin_at(op.cause, at, usual);
  const Duration hold = hold_time(op.op, op.iteration, begin);
  message.holding = true;
  ++message.unsent;
  expect(state_.transport.send_payload(peer, state_.tags.payload(self, op.op, op.iteration),
                                       message.payload.bytes),
         Role::payload_out, message);
  state_.transport.ring_doorbell(peer);
  if (hold > Duration::zero()) {
    state_.conditions.going_on(op.op, begin);
    state_.credit.add(at - begin);
  }
  set_timer(begin + hold, Timer::Kind::hold_over, op);
}

/// Makes it, or takes on the one that a relay received.
Payload EventPlayer::payload_of(const OpInstance& op) {
  if (state_.relays.forwards.recv_before(op.op) == kNone<OpId>)
    return state_.data_plane.make(op.op);
  ++state_.checks.relayed;
  state_.checks.relayed_bytes += plan_.op(op.op).size.count();
  return state_.relays.take(op.op).payload;
}

/// It stays here, or a relay's send takes it on as it came.
void EventPlayer::pass_on(OpInstance& op, Payloads::Verdict verdict) {
  Payload& payload = op.message->payload;
  if (state_.relays.forwards.send_after(op.op) == kNone<OpId>)
    return state_.data_plane.deliver(op.op, std::move(payload));
  state_.relays.keep(op.op, {std::move(payload), verdict != Payloads::Verdict::right});
}

bool EventPlayer::took(const comm::Completion& completion, TimePoint at) {
  if (has_sources_) board_.set_quiet(false);
  if (control_ && control_->took(completion)) {
    for (const plan::StreamSetting& setting : control_->take_settings()) values_.append(setting);
    moves_ = true;
    return true;
  }
  if (const auto news = news_out_.find(completion.request); news != news_out_.end()) {
    news_out_.erase(news);
    return true;
  }
  if (const auto from = expected_news_.find(completion.request); from != expected_news_.end()) {
    NewsFrom& other = *from->second;
    expected_news_.erase(from);
    other.over = other.news.kind == OpNews::Kind::over;
    if (!other.over) {
      heed(other.news, at, false);
      receive_news(other.rank);
    }
    return true;
  }
  const auto found = expected_.find(completion.request);
  if (found == expected_.end()) return false;
  const auto [role, message] = found->second;
  expected_.erase(found);
  --message->on_the_way;
  moves_ = true;
  ++activity_;
  if (has_sources_ && ((role == Role::header_in && message->from_this_host) ||
                       (role == Role::word_in && message->counts)))
    board_.count_received();
  switch (role) {
    case Role::word_out: break;
    case Role::header_out:
    case Role::payload_out:
      --message->unsent;
      if (message->op != nullptr) end_send_if_over(*message->op, at, at);
      break;
    case Role::header_in: header_came(*message, at); break;
    case Role::payload_in: payload_came(*message, completion.size_bytes, at); break;
    case Role::word_in: word_came(*message, at); break;
  }
  messages_.close_if_over(*message);
  return true;
}

/// Also of a receive that does not run: its sender, which is told so, answers.
void EventPlayer::header_came(EventMessage& message, TimePoint at) {
  if (message.op == nullptr) return;
  OpInstance& op = *message.op;
  if (message.header.skipped != 0) return skip(op, Outcome::skipped, at);
  const Op& own = plan_.op(op.op);
  const OpId send{own.match};
  const MessageHeader right =
      message_header(plan_, send, state_.run, first_iteration_ + op.iteration);
  if (!same_message(message.header.message, right)) {
    ++state_.checks.mixed_up;
    state_.wrong.push_back({op.op, first_iteration_ + op.iteration,
                            Payloads::Verdict::wrong_message, false,
                            message.header.message.payload});
  }
  LaneState& lane = lane_of(op.op);
  const Duration later{message.header.starts_in_ns};
  op.stage = Stage::served;
  ++in_progress_;
  // Heard late it may seem to start before the one before it.
  op.time.start = std::max(at + later, lane.last_start);
  if (message.header.message.waited_for_receiver == 0) op.cause = {at, send, BoundKind::dependency};
  lane.last_start = std::max(lane.last_start, op.time.start);
  leave(op);
  if (op.time.start > at)
    set_timer(op.time.start, Timer::Kind::begin, op);
  else
    begin_op(op, at);
  ++state_.open_transfers;
  message.payload = state_.data_plane.room(op.op);
  expect(state_.transport.receive_payload(
             own.peer, state_.tags.payload(own.peer, send, op.iteration), message.payload.bytes),
         Role::payload_in, message);
}

/// What the real transfer has used counts against the nominal time.
void EventPlayer::payload_came(EventMessage& message, std::size_t size, TimePoint at) {
  OpInstance& op = *message.op;
  --state_.open_transfers;
  auto& bytes = message.payload.bytes;
  bytes = bytes.first(std::min(size, bytes.size()));
  PayloadId found;
  const auto verdict = state_.data_plane.check(op.op, bytes, found);
  if (verdict == Payloads::Verdict::right) {
    ++state_.checks.messages;
    ++state_.checks.of_leg[index(plan_.op(op.op).leg)];
  } else {
    const bool other = verdict == Payloads::Verdict::wrong_message;
    ++(other ? state_.checks.mixed_up : state_.checks.corrupted);
    const bool came_wrong = message.header.message.came_wrong != 0;
    state_.wrong.push_back({op.op, first_iteration_ + op.iteration, verdict, came_wrong, found});
  }
  pass_on(op, verdict);
  const OpId send{plan_.op(op.op).match};
  const TimePoint start = op.time.start;
  const Duration used = std::max(Duration::zero(), at - start);
  ++state_.transfers.transfers;
  state_.transfers.total += used;
  state_.transfers.longest = std::max(state_.transfers.longest, used);
  const std::int64_t drawn = op.message->header.takes_ns;
  const Duration hold = hold_time(send, op.iteration, start,
                                  drawn >= 0 ? Duration{drawn} : duration_of(send, op.iteration));
  const TimePoint over = std::max(at, start + hold);
  const TimePoint due = over + latency(op.op, op.iteration, over);
  set_timer(due, Timer::Kind::arrival, op);
}

void EventPlayer::word_came(EventMessage& message, TimePoint at) {
  if (message.op == nullptr) return;
  OpInstance& op = *message.op;
  if (message.word.skipped != 0) return skip(op, Outcome::skipped, at);
  // To a send that a source drew it may have been said long ago.
  const TimePoint said =
      message.from_this_host && !message.counts ? TimePoint{message.word.said_at_ns} : at;
  op.other_ready = said - Duration{message.word.ready_ago_ns};
  op.other_lane = said - Duration{message.word.lane_ago_ns};
}

void EventPlayer::end_send_if_over(OpInstance& op, TimePoint due, TimePoint at) {
  if (op.stage != Stage::served || op.message->unsent > 0 || op.message->holding ||
      op.message->payload.bytes.data() == nullptr)
    return;
  state_.conditions.over(op.op);
  end(op, std::min(due, at), at);
}

/// The op is over: its message is, once nothing of it is on its way.
void EventPlayer::close(OpInstance& op) {
  EventMessage& message = *std::exchange(op.message, nullptr);
  message.op = nullptr;
  messages_.close_if_over(message);
}

}  // namespace longhaul::engine
