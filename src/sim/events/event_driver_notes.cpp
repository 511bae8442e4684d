// What others learn of an op: ranks that slow, versions, sources; and where nothing moves any more.
#include <algorithm>
#include <string>

#include "base/index.hpp"
#include "sim/events/event_driver.hpp"

namespace longhaul::sim {

void EventDriver::note_start(std::uint32_t id, Duration start) {
  stage(id) = Stage::served;
  const std::uint32_t own = instances_.op(id);
  const std::uint32_t lane = lane_of(id);
  if (lanes_[lane].way == Way::pool && lanes_[lane].serve == Serve::order && is_mandatory(id)) {
    lanes_[lane].last_start = start;
    lanes_[lane].last = own;
  }
  leave(id);
  const int iteration = instances_.iteration(id);
  if (!windows_.empty() && is_mandatory(id) && !begun_.contains(iteration))
    events_.push({start, static_cast<std::uint32_t>(iteration), EventKind::begin_iteration});
  if (!far_.first.empty()) {
    for (std::uint32_t k = far_.first[own]; k < far_.first[own + 1]; ++k) {
      if (far_.all[k].strength == plan::Strength::strong) continue;
      instances_.expect_more(id);
      events_.push({start, id, EventKind::meet});
    }
  }
}

void EventDriver::note_end(std::uint32_t id, Duration hold_end, Duration end) {
  const Op& own = op(id);
  if (own.kind == OpKind::compute || own.kind == OpKind::send) {
    if (access(own) == Access::choice) events_.push({hold_end, id, EventKind::release});
    if (lanes_[lane_of(id)].way == Way::sourced)
      events_.push({hold_end, lane_of(id), EventKind::ask_source});
  }
  if (progress_ && own.kind == OpKind::send && hold_end > time(id).start &&
      progress_->slows(plan_.level_of(instances_.id(id)))) {
    events_.push({time(id).start, id, EventKind::begin_hold});
    events_.push({hold_end, id, EventKind::end_hold});
  }
  if (sources_ || deadlines_.heeds(instances_.id(id)) ||
      (!watched_.empty() && watched_[instances_.op(id)] != 0)) {
    instances_.expect_more(id);
    events_.push({end, id, EventKind::end_op});
  }
  if (optional_.empty()) return;
  if (end > deadline_of(id, time(id).start)) instances_.outcomes[id] = Outcome::late;
}

/// A block whose end depends on the messages beside it.
void EventDriver::begin_block(std::uint32_t id, const Bound& bound) {
  LaneState& lane = lanes_[lane_of(id)];
  if (lane.way == Way::in_turn) {
    lane.last_start = bound.until;
    lane.last = instances_.op(id);
    lane.free = kForever;
    ++lane.next;
  }
  running_[id] = bound;
  const Duration due =
      progress_->begin(plan_.rank_of(instances_.id(id)), id, duration_of(id), bound.until);
  events_.push({due, id, EventKind::end_block});
  note_start(id, bound.until);
}

void EventDriver::end_block(std::uint32_t id) {
  const auto running = running_.find(id);
  if (running == running_.end()) return;
  if (!progress_->end(plan_.rank_of(instances_.id(id)), id, now_)) return;  // it slowed
  const Bound bound = running->second;
  running_.erase(running);
  OpTime& own = time(id);
  const auto waiting = static_cast<std::uint32_t>(own.start.count());
  own.start = bound.until;
  own.end = now_;
  own.bound_by = OpId{bound.by};
  own.bound_kind = bound.kind;
  instances_.settle(id);
  note_end(id, now_, now_);
  LaneState& lane = lanes_[lane_of(id)];
  if (lane.way == Way::in_turn) {
    lane.free = now_;
    work_.push_back(lane_of(id));
  }
  wake(waiting);
}

/// A message begins, or ends, to slow its ranks.
void EventDriver::hold_ranks(std::uint32_t send, int by) {
  const OpId id = instances_.id(send);
  for (const Rank rank : {plan_.rank_of(id), plan_.op(id).peer})
    for (const auto& [instance, due] : progress_->change(rank, plan_.level_of(id), by, now_))
      events_.push({due, instance, EventKind::end_block});
}

void EventDriver::note_op_end(std::uint32_t id, Duration end) {
  const int iteration = instances_.iteration(id);
  if (sources_) {
    const plan::Draw* const draw = draw_of(id);
    sources_->add(
        {instances_.id(id), iteration, end, draw == nullptr ? plan::DrawnWords{} : draw->words});
  }
  deadlines_.add({instances_.id(id), iteration, end});
  if (!watched_.empty() && watched_[instances_.op(id)] != 0) {
    std::vector<int>& ended = ended_[instances_.op(id)];
    ended.insert(std::ranges::upper_bound(ended, iteration), iteration);
    // A version is of the iteration itself or of the latest one: older ones are not asked for.
    const auto old = std::ranges::lower_bound(ended, instances_.oldest() - reach_of_versions_);
    if (old - ended.begin() > 1) ended.erase(ended.begin(), old - 1);
  }
  instances_.settle(id);
}

/// All that ends in this instant has ended.
void EventDriver::meet_versions() {
  for (const std::uint32_t id : unmet_) {
    const std::uint32_t own = instances_.op(id);
    for (std::uint32_t k = far_.first[own]; k < far_.first[own + 1]; ++k) {
      const plan::FarDependency& far = far_.all[k];
      if (far.strength == plan::Strength::strong) continue;
      const std::vector<int>& ended = ended_[static_cast<std::uint32_t>(index(far.before))];
      const int iteration = instances_.iteration(id);
      const auto next = std::ranges::upper_bound(ended, iteration - far.iterations_back);
      instances_.versions[id] = next == ended.begin()
                                    ? stream_.version_before(iteration, far.iterations_back)
                                    : *std::prev(next);
      instances_.settle(id);
    }
  }
  unmet_.clear();
}

/// An instance that its lane still has to run; kNoOp: there is none.
std::uint32_t EventDriver::first_unfinished() const {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (plan_.lanes[i].count == 0) continue;
    const LaneState& lane = lanes_[i];
    if (lane.iteration + 1 == stream_.iterations && lane.next == lane.end &&
        lane.way == Way::in_turn)
      continue;
    const int iteration = std::max(lane.iteration, stream_.first);
    const std::uint32_t first =
        instances_.base_of(iteration) + static_cast<std::uint32_t>(index(plan_.lanes[i].first));
    for (std::uint32_t id = first; id < first + plan_.lanes[i].count; ++id)
      if (time(id).end == kPending) return id;
  }
  return kNoOp;
}

/// The op that a stuck one waits for; itself where that cannot be told.
std::uint32_t EventDriver::blocker_of(std::uint32_t id) const {
  const LaneState& lane = lanes_[lane_of(id)];
  const std::uint32_t base = instances_.base(id);
  if (lane.way == Way::in_turn && instances_.iteration(id) == lane.iteration && lane.next != id)
    return lane.next;
  for (const OpId before : plan_.after_of(instances_.id(id)))
    if (time(base + number(before)).end == kPending) return base + number(before);
  for (const plan::FarDependency& far : plan_.extras.far) {
    const int from = instances_.iteration(id) - far.iterations_back;
    if (far.op != instances_.id(id) || far.strength == plan::Strength::weak ||
        !instances_.is_open(from))
      continue;
    const std::uint32_t cause = instances_.base_of(from) + number(far.before);
    if (time(cause).end == kPending) return cause;
  }
  const Op& own = op(id);
  if (own.kind == OpKind::collective) {
    for (const OpId member : plan_.collectives[own.match])
      if (time(base + number(member)).ready == kPending) return base + number(member);
  }
  if (own.kind == OpKind::send || own.kind == OpKind::recv) return other_side(id);
  for (const ResourceId held : plan_.resources_of(instances_.id(id)))
    for (const OpId first : plan_.resources[index(held)].order)
      if (time(base + number(first)).end == kPending) return base + number(first);
  return id;
}

Refusal EventDriver::deadlock() const {
  std::vector<std::uint32_t> path{first_unfinished()};
  for (;;) {
    const std::uint32_t next = blocker_of(path.back());
    const auto seen = std::ranges::find(path, next);
    const bool closed = seen != path.end();
    if (closed) path.erase(path.begin(), seen);
    path.push_back(next);
    if (closed) break;
  }
  std::string cycle;
  for (const std::uint32_t id : path) {
    if (!cycle.empty()) cycle += ", which waits for ";
    cycle += fmt::format("{} (op {}, lane \"{}\")", to_text(plan_, instances_.id(id)),
                         instances_.op(id), plan_.lanes[lane_of(id)].name);
    if (stream_.iterations > 1) cycle += fmt::format(" of iteration {}", instances_.iteration(id));
  }
  return {fmt::format("schedule {} deadlocks ({}). Change the order of these ops.", plan_.schedule,
                      cycle),
          ExitCode::run_failed};
}

}  // namespace longhaul::sim
