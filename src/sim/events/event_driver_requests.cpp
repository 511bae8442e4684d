// What serves in order of readiness, and collectives that are one op.
#include <algorithm>
#include <tuple>
#include <vector>

#include "base/index.hpp"
#include "sim/events/event_driver_steps.hpp"

namespace longhaul::sim {

bool EventDriver::Request::operator>(const Request& other) const {
  return std::tie(ready, iteration, instance) >
         std::tie(other.ready, other.iteration, other.instance);
}

/// Puts a posted op in the queue for its resources, unless another one's turn comes first.
void EventDriver::ask(std::uint32_t id) {
  const int iteration = instances_.iteration(id);
  if (!pool_.is_next(instances_.id(id), iteration)) return;
  Duration ready = time(id).ready;
  if (op(id).kind == OpKind::send) ready = std::max(ready, time(other_side(id)).ready);
  requests_.push({ready, id, iteration});
}

void EventDriver::serve(const Request& request) {
  const std::uint32_t id = request.instance;
  // Skipped since it asked, or asked for twice.
  if (time(id).end != kPending || instances_.iteration(id) != request.iteration) return;
  const Op& own = op(id);
  served_ = std::max(served_, request.ready);
  Bound bound = own.kind == OpKind::collective ? last_member(id) : bound_of(id);
  const ResourcePool::Free free = pool_.free_for(instances_.id(id));
  bound.raise(free.at, static_cast<std::uint32_t>(index(free.holder)), BoundKind::resource);
  // An op that was ready before its lane let it ask.
  if (lanes_[lane_of(id)].way != Way::in_turn)
    bound.raise(now_, index(kNone<OpId>), BoundKind::start);
  if (misses_deadline(id, bound.until)) return skip(id, Outcome::skipped);
  Duration until = bound.until;
  switch (own.kind) {
    case OpKind::send: until = run_transfer(id, bound); break;
    case OpKind::collective: until = run_collective(id, bound); break;
    case OpKind::recv:
    case OpKind::compute: until += duration_of(id); finish(id, until, until, bound);
  }
  pool_.hold(instances_.id(id), until, served_);
  if (own.kind == OpKind::send) work_.push_back(lane_of(other_side(id)));
  work_.push_back(lane_of(id));
  ask_successors(id);
}

/// Those whose turn in a stated order comes next, of this iteration or of the one after it.
void EventDriver::ask_successors(std::uint32_t id) {
  std::vector<OpId> successors;
  pool_.append_successors(instances_.id(id), successors);
  for (const OpId successor : successors) {
    for (const int iteration : {instances_.iteration(id), instances_.iteration(id) + 1}) {
      if (!instances_.is_open(iteration)) continue;
      const std::uint32_t next =
          instances_.base_of(iteration) + static_cast<std::uint32_t>(index(successor));
      const bool both = op(next).kind != OpKind::send || time(other_side(next)).ready != kPending;
      if (time(next).ready != kPending && time(next).end == kPending && both) ask(next);
    }
  }
}

/// Called when a member has been posted, and again when the last of them is ready.
bool EventDriver::start_collective(std::uint32_t id, std::uint32_t lane) {
  const auto& members = plan_.collectives[op(id).match];
  const std::uint32_t base = instances_.base(id);
  for (const OpId member : members)
    if (time(base + static_cast<std::uint32_t>(index(member))).ready == kPending) return false;
  const Bound latest = last_member(id);
  if (access(op(id)) == Access::request) {
    requests_.push({latest.until, base + static_cast<std::uint32_t>(index(members.front())),
                    instances_.iteration(id)});
    return false;
  }
  if (latest.until > now_) return sleep(lane, latest.until), false;
  run_collective(id, latest);
  return true;
}

/// The member that comes last, and when.
EventDriver::Bound EventDriver::last_member(std::uint32_t id) const {
  Bound latest;
  for (const OpId member : plan_.collectives[op(id).match]) {
    const Bound own = bound_of(instances_.base(id) + static_cast<std::uint32_t>(index(member)));
    if (own.until >= latest.until)
      latest = {own.until, static_cast<std::uint32_t>(index(member)), BoundKind::rendezvous};
  }
  return latest;
}

/// Gives back until when its members hold their resources.
Duration EventDriver::run_collective(std::uint32_t id, const Bound& latest) {
  const auto& members = plan_.collectives[op(id).match];
  const std::uint32_t base = instances_.base(id);
  const std::uint32_t own_lane = lane_of(id);
  const auto iteration = static_cast<std::uint64_t>(instances_.iteration(id));
  const Duration takes =
      at_.weather == nullptr
          ? duration_of(base + static_cast<std::uint32_t>(index(members.front())))
          : at_.weather->collective(members.front(), at_.iteration + iteration,
                                    at_.begin + latest.until);
  const Duration end = latest.until + takes;
  for (const OpId member : members) {
    const std::uint32_t each = base + static_cast<std::uint32_t>(index(member));
    const Bound own = bound_of(each);
    finish(each, end, end, own.until == latest.until ? own : latest);
    if (lane_of(each) != own_lane) work_.push_back(lane_of(each));
  }
  return end;
}

}  // namespace longhaul::sim
