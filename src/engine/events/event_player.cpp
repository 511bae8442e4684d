#include "engine/events/event_player.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "engine/events/verify_events.hpp"

namespace longhaul::engine {

namespace {

/// Who reads the board wakes no one who waits for room on it.
constexpr Duration kFlushesAgain = std::chrono::microseconds{100};

}  // namespace

std::unique_ptr<PlanPlayer> make_event_player(EngineState& state, Device& device) {
  return std::make_unique<EventPlayer>(state, device);
}

EventPlayer::EventPlayer(EngineState& state, Device& device)
    : state_{state},
      plan_{state.plan},
      device_{device},
      facts_{state.plan, state.host_ranks.self()},
      live_{state.plan, state.host_ranks.self(), facts_.reach},
      values_{state.plan},
      place_(state.plan.lanes.size(), 0),
      board_{state.host_ranks} {
  for (std::size_t i = 0; i < plan_.lanes.size(); ++i) {
    const Lane& lane = plan_.lanes[i];
    if (lane.rank != state_.host_ranks.self() || lane.count == 0) continue;
    place_[i] = static_cast<std::uint32_t>(lanes_.size());
    LaneState& own = lanes_.emplace_back();
    own.id = LaneId{static_cast<std::uint32_t>(i)};
    own.way = facts_.ways[i];
    own.serve = lane.serve;
    own.count = lane.count;
    for (std::size_t id = index(lane.first); id < index(lane.first) + lane.count; ++id)
      if (!facts_.is_optional(OpId{static_cast<std::uint32_t>(id)})) own.has_mandatory = true;
  }
  make_tables();
  find_lone_sets();
  find_listeners();
}

void EventPlayer::prepare(const plan::Stream& stream, int first, const PlayedWeather& weather,
                          Sink sink, StreamControl* control) {
  stream_ = stream;
  control_.reset();
  if (control != nullptr) control_.emplace(state_, *control);
  first_iteration_ = first;
  weather_ = weather;
  sink_ = std::move(sink);
  values_.clear();
  for (const plan::StreamSetting& setting : stream_.settings) values_.append(setting);
  own_->clear();
  if (shared_) shared_->clear();
  board_.join();
  heard_.clear();
  sources_.begin(plan_, state_.host_ranks.self());
  deadlines_.begin(plan_.extras.deadlines);
  for (auto* ops : {&asked_, &unmet_}) ops->clear();
  running_.clear();
  in_progress_ = 0;
  decided_.clear();
  remote_.clear();
  ended_.clear();
  begun_.clear();
  said_over_ = false;
}

void EventPlayer::begin(TimePoint at) {
  began_ = at;
  live_.clear(stream_.first);
  held_back_.clear();
  places_.clear();
  sending_.clear();
  begun_[stream_.first] = at;
  while (!timers_.empty()) timers_.pop();
  for (LaneState& lane : lanes_) {
    LaneState fresh;
    fresh.id = lane.id;
    fresh.way = lane.way;
    fresh.serve = lane.serve;
    fresh.count = fresh.next = lane.count;
    fresh.iteration = stream_.first - 1;
    fresh.has_mandatory = lane.has_mandatory;
    fresh.last_start = fresh.free = at;
    lane = fresh;
  }
  for (const auto& from : distant_news_) {
    from->over = false;
    receive_news(from->rank);
  }
  if (control_) control_->begin(stream_.first, stream_.iterations);
  moves_ = true;
}

bool EventPlayer::done() const {
  if (has_sources_ && !timers_.empty()) return false;  // when nothing happens is of all ranks
  return live_.next_to_hand_over() == stream_.iterations && messages_.none() && said_over_ &&
         news_out_.empty() && !board_.has_backlog() && (!control_ || control_->done()) &&
         std::ranges::all_of(distant_news_, [](const auto& from) { return from->over; });
}

/// Timers of what did not come about wake no one.
void EventPlayer::finish() {
  timers_ = {};
  board_.leave();
  if (!has_sources_) return;
  for (const Rank rank : state_.host_ranks.local())
    if (facts_.listeners[index(rank)] != 0) state_.host_ranks.ring_doorbell(rank);
}

bool EventPlayer::step(TimePoint at) {
  if (has_sources_) board_.set_quiet(false);
  bool moved = hear(at);
  moved = take_timers(at) || moved;
  moved = finish_blocks(at) || moved;
  moved = heed_decisions(at) || moved;
  moved = advance_lanes(at) || moved;
  board_.flush();
  if (board_.has_backlog() && virtual_clock() == nullptr && next_timer() > at + kFlushesAgain)
    timers_.push({at + kFlushesAgain, Timer::Kind::wake, kNone<OpId>, -1});
  hand_over();
  if (moved) ++activity_;
  return moved;
}

bool EventPlayer::take_timers(TimePoint at) {
  bool moved = false;
  while (next_timer() <= at) {
    const Timer timer = timers_.top();
    timers_.pop();
    OpInstance* const op = live_.find(timer.op, timer.iteration);
    moves_ = moved = true;
    if (op == nullptr) continue;
    switch (timer.kind) {
      case Timer::Kind::wake: break;
      case Timer::Kind::begin: begin_op(*op, at); break;
      case Timer::Kind::hold_over:
        op->message->holding = false;
        end_send_if_over(*op, timer.due, at);
        break;
      case Timer::Kind::arrival: end(*op, timer.due, at); break;
      case Timer::Kind::give_up: give_up(*op, at); break;
    }
  }
  return moved;
}

bool EventPlayer::finish_blocks(TimePoint at) {
  bool moved = false;
  while (const auto finished = device_.finished(at)) {
    // Of one op blocks of several iterations may run: with other durations after a setting.
    const auto is_it = [&](const RunningBlock& block) { return block.op->op == finished->op; };
    auto found = std::ranges::find_if(running_, [&](const RunningBlock& block) {
      return is_it(block) && block.due == finished->due;
    });
    if (found == running_.end()) found = std::ranges::find_if(running_, is_it);
    LONGHAUL_ASSERT(found != running_.end(), "op {} ends and does not run", index(finished->op));
    OpInstance& op = *found->op;
    const TimePoint planned_end = found->planned_end;
    running_.erase(found);
    state_.lateness.add(at - finished->due);
    if (finished->begin != kNever)
      state_.credit.add(std::max(Duration::zero(), op.time.start - finished->begin));
    end(op, finished->due, at);
    if (leave_late(op, finished->due, at) || finished->due < planned_end)
      move_places_up(op, finished->due, at);
    moved = true;
  }
  for (OpInstance* const op : std::exchange(held_back_, {})) begin_op(*op, at);
  return moved;
}

bool EventPlayer::heed_decisions(TimePoint at) {
  if (decided_.empty() && asks_ == nullptr && !meets_) return false;
  const auto decided = std::exchange(decided_, {});
  for (const auto& [op, from, misses] : decided) {
    if (misses)
      skip(*op, Outcome::skipped, at);
    else
      start(*op, from, at);
  }
  if (std::exchange(meets_, false)) meet_versions();
  if (auto* const entry = std::exchange(asks_, nullptr)) (void)ask_source(*entry, at);
  return true;
}

bool EventPlayer::advance_lanes(TimePoint at) {
  bool moved = false;
  while (std::exchange(moves_, false)) {
    for (LaneState& lane : lanes_) {
      if (lane.way == Way::in_turn) {
        moved = advance_in_turn(lane, at) || moved;
        continue;
      }
      if (lane.way == Way::pool) moved = admit_pool(lane, at) || moved;
      moved = bring_waiting(lane, at) || moved;
    }
  }
  return moved;
}

bool EventPlayer::begin_iteration(LaneState& lane) {
  if (lane.iteration + 1 >= stream_.iterations) return false;
  if (control_ && !control_->may_begin(lane.iteration + 1)) return false;
  ++lane.iteration;
  lane.next = 0;
  return true;
}

bool EventPlayer::advance_in_turn(LaneState& lane, TimePoint at) {
  bool moved = false;
  for (;;) {
    if (lane.next == lane.count && !begin_iteration(lane)) return moved;
    const OpId id{static_cast<std::uint32_t>(index(plan_.lanes[index(lane.id)].first)) + lane.next};
    OpInstance& op = live_.at(id, lane.iteration);
    if (op.stage == Stage::away) {
      admit(op, at);
      moved = true;
    }
    if (op.stage < Stage::served) moved = bring(op, at) || moved;
    if (op.stage < Stage::served) return moved;
    if (op.stage == Stage::skipped) lane.last_start = std::max(lane.last_start, at);
    ++lane.next;
    moved = true;
  }
}

/// Lets ops of a pool begin to wait: where the lane chooses all of an iteration, where it is an
/// order those up to the next one that must run.
bool EventPlayer::admit_pool(LaneState& lane, TimePoint at) {
  bool moved = false;
  const auto first = static_cast<std::uint32_t>(index(plan_.lanes[index(lane.id)].first));
  while (lane.awaited == nullptr) {
    if (lane.next == lane.count) {
      if (lane.iteration >= stream_.first &&
          (lane.has_mandatory ? lane.open_mandatory : lane.open_all) > 0)
        return moved;
      if (!begin_iteration(lane)) return moved;
      lane.open_all = lane.open_mandatory = 0;
      for (std::uint32_t k = 0; k < lane.count; ++k) {
        if (live_.at(OpId{first + k}, lane.iteration).stage == Stage::skipped) continue;
        ++lane.open_all;
        if (!facts_.is_optional(OpId{first + k})) ++lane.open_mandatory;
      }
    }
    OpInstance& op = live_.at(OpId{first + lane.next++}, lane.iteration);
    moved = true;
    if (op.stage != Stage::away) continue;
    if (!facts_.is_optional(op.op) && lane.serve == Serve::order) lane.awaited = &op;
    lane.waiting.push_back(&op);
    admit(op, at);
  }
  return moved;
}

bool EventPlayer::bring_waiting(LaneState& lane, TimePoint at) {
  bool moved = false;
  for (std::size_t i = 0; i < lane.waiting.size(); ++i)
    if (lane.waiting[i]->stage < Stage::arrived) moved = bring(*lane.waiting[i], at) || moved;
  std::erase_if(lane.waiting, [](const OpInstance* op) { return op->stage >= Stage::served; });
  return moved;
}

PlayedOps EventPlayer::played(const std::vector<OpInstance>& ops) const {
  PlayedOps all;
  all.times.resize(plan_.ops.size());
  for (const OpInstance& op : ops) {
    all.times[index(op.op)] = op.time;
    all.end = std::max(all.end, op.time.end);
    if (op.outcome != Outcome::ran) {
      all.outcomes.resize(plan_.ops.size(), Outcome::ran);
      all.outcomes[index(op.op)] = op.outcome;
    }
    if (op.version >= 0) {
      all.versions.resize(plan_.ops.size(), -1);
      all.versions[index(op.op)] = op.version;
    }
  }
  all.order = verify_events(plan_, facts_, state_.host_ranks.self(), ops);
  return all;
}

/// Hands over what is complete, and says to others when that was the last.
void EventPlayer::hand_over() {
  if (lanes_.empty()) live_.open(stream_.iterations - 1);
  while (live_.has_complete() && live_.next_to_hand_over() < stream_.iterations) {
    PlayedOps over = played(live_.complete());
    if (control_ && !lanes_.empty()) control_->report(live_.next_to_hand_over(), over.times);
    if (sink_) sink_(live_.next_to_hand_over(), std::move(over));
    live_.release_complete();
    const int oldest = live_.oldest();
    while (!begun_.empty() && begun_.begin()->first < oldest) begun_.erase(begun_.begin());
    while (!remote_.empty() && remote_.begin()->first < oldest) remote_.erase(remote_.begin());
  }
  if (said_over_ || live_.next_to_hand_over() < stream_.iterations) return;
  said_over_ = true;
  for (const Rank rank : distant_) send_news(rank, {0, 0, 0, OpNews::Kind::over, 0});
}

void EventPlayer::note(OpId op, comm::OpEvent event) const {
  state_.ops.events().note(op, event);
  comm::RankStatus& slot = state_.host_ranks.mine();
  slot.last_op.store(static_cast<std::uint32_t>(op), std::memory_order_relaxed);
  slot.last_event.store(event, std::memory_order_relaxed);
}

void EventPlayer::publish_wait() {
  OpId waits_for = kNone<OpId>;
  for (const LaneState& lane : lanes_) {
    if (plan_.lanes[index(lane.id)].kind != OpKind::compute || lane.next >= lane.count) continue;
    const OpId next{static_cast<std::uint32_t>(index(plan_.lanes[index(lane.id)].first)) +
                    lane.next};
    for (const OpId before : plan_.after_of(next)) {
      const OpInstance* const op = live_.find(before, std::max(lane.iteration, stream_.first));
      if (op != nullptr && op->stage < Stage::ended) waits_for = before;
    }
    if (waits_for != kNone<OpId>) break;
  }
  comm::RankStatus& slot = state_.host_ranks.mine();
  slot.waits_for.store(static_cast<std::uint32_t>(waits_for), std::memory_order_relaxed);
  slot.unposted.store(0, std::memory_order_relaxed);
}

}  // namespace longhaul::engine
