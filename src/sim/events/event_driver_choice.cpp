// Lanes and resources that choose.
#include <algorithm>
#include <tuple>

#include "base/index.hpp"
#include "plan/check_extras.hpp"
#include "sim/events/event_driver_steps.hpp"

namespace longhaul::sim {

bool EventDriver::Candidate::operator>(const Candidate& other) const {
  return std::tie(first, second, op) > std::tie(other.first, other.second, other.op);
}

/// When both sides are ready, each by itself.
Duration EventDriver::arrival_of(std::uint32_t id) const {
  if (op(id).kind != OpKind::send) return time(id).ready;
  return std::max(time(id).ready, time(other_side(id)).ready);
}

/// Where an op stands among those that can start: a lane that is an order is by (iteration, op),
/// after that deadline by (iteration, priority, op), and after these arrival by (ready, iteration,
/// op).
EventDriver::Candidate EventDriver::candidate(std::uint32_t id) const {
  Candidate made;
  made.op = instances_.op(id);
  made.instance = id;
  made.iteration = instances_.iteration(id);
  switch (plan::serving_of(plan_, instances_.id(id))) {
    case Serve::order: made.first = made.iteration - plan::kFarApart; break;
    case Serve::arrival:
      made.first = plan::kFarApart + arrival_of(id).count();
      made.second = made.iteration;
      break;
    case Serve::deadline: {
      made.first = made.iteration;
      made.second = priorities_.empty() ? 0 : priorities_[made.op];
    }
  }
  return made;
}

/// Of a posted op, of a message both sides: it takes part in the choice from its arrival on.
void EventDriver::arrive(std::uint32_t id) {
  if (stage(id) == Stage::arrived || stage(id) == Stage::served || time(id).end != kPending) return;
  if (time(id).ready == kPending) return;
  if (op(id).kind == OpKind::send && time(other_side(id)).ready == kPending) return;
  const Duration at = arrival_of(id);
  if (at > now_) return events_.push({at, id, EventKind::arrival});
  stage(id) = Stage::arrived;
  active_.push(candidate(id));
}

/// Starts the first of those that can; false: none can.
bool EventDriver::choose(Which which) {
  while (!active_.empty() && (which == Which::all || active_.top().first < 0)) {
    Candidate first = active_.top();
    active_.pop();
    const std::uint32_t id = first.instance;
    const bool there = stage(id) == Stage::arrived && time(id).end == kPending &&
                       instances_.iteration(id) == first.iteration;
    const std::uint32_t from = first.from;
    if (there) {
      const std::uint32_t busy = busy_resource(id);
      if (busy == kNoOp) {
        start_chosen(id);
        if (from != kNoOp) pull(from);
        return true;
      }
      first.from = busy;
      waiting_[busy].push(first);
    }
    if (from != kNoOp) pull(from);
  }
  return false;
}

/// The first that waits for a resource competes again, while that is free.
void EventDriver::pull(std::uint32_t resource) {
  if (busy_[resource] >= plan_.resources[resource].capacity || waiting_[resource].empty()) return;
  active_.push(waiting_[resource].top());
  waiting_[resource].pop();
}

/// One that the op needs and that is not free; kNoOp: none.
std::uint32_t EventDriver::busy_resource(std::uint32_t id) const {
  for (const ResourceId held : plan_.resources_of(instances_.id(id)))
    if (busy_[index(held)] >= plan_.resources[index(held)].capacity)
      return static_cast<std::uint32_t>(index(held));
  return kNoOp;
}

void EventDriver::start_chosen(std::uint32_t id) {
  if (misses_deadline(id, now_)) return skip(id, Outcome::skipped);
  Bound bound = bound_of(id);
  for (const ResourceId held : plan_.resources_of(instances_.id(id))) {
    const ResourcePool::Free& last = released_[index(held)];
    bound.raise(last.at, static_cast<std::uint32_t>(index(last.holder)), BoundKind::resource);
    ++busy_[index(held)];
  }
  bound.until = now_;
  if (op(id).kind == OpKind::send) {
    run_transfer(id, bound);
    work_.push_back(lane_of(other_side(id)));
  } else {
    run_compute(id, bound);
  }
  work_.push_back(lane_of(id));
}

void EventDriver::release(std::uint32_t id) {
  for (const ResourceId held : plan_.resources_of(instances_.id(id))) {
    --busy_[index(held)];
    released_[index(held)] = {now_, instances_.id(id)};
    pull(static_cast<std::uint32_t>(index(held)));
  }
}

/// Would an optional op that starts then end after its deadline?
bool EventDriver::misses_deadline(std::uint32_t id, Duration start) {
  if (optional_.empty() || optional_[instances_.op(id)] == 0) return false;
  const Duration deadline = deadline_of(id, start);
  if (deadline == kForever) return false;
  const Duration takes = op(id).kind == OpKind::send ? hold_time(id, start) : announced(id);
  return start + takes > deadline;
}

/// By when an optional op that starts then must end, as known by now; kForever: whenever.
Duration EventDriver::deadline_of(std::uint32_t id, Duration start) {
  const auto window = windows_.find(instances_.op(id));
  if (window == windows_.end() || window->second.deadline == plan::kNoDeadline) return kForever;
  const int iteration = instances_.iteration(id);
  return deadlines_.of(instances_.id(id), iteration, begun_.at(iteration) + window->second.deadline,
                       start, now_);
}

}  // namespace longhaul::sim
