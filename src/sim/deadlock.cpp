#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "sim/lane_sweep.hpp"

namespace longhaul::sim {

/// Only called when nothing can move any more.
LaneSweep::Blocker LaneSweep::blocker_of(std::uint32_t id) const {
  const LaneState& lane = lanes_[lane_of(id)];
  if (lane.next != id) return {lane.next};  // an op before it on its lane
  for (const OpId cause : plan_.after_of(OpId{id})) {
    if (times_[index(cause)].end < Duration::zero())
      return {static_cast<std::uint32_t>(index(cause))};
  }
  const Op& op = plan_.ops[id];
  if (op.kind == OpKind::collective) {
    for (const OpId member : plan_.collectives[op.match]) {
      if (times_[index(member)].ready < Duration::zero())
        return {static_cast<std::uint32_t>(index(member))};
    }
  }
  if (op.kind == OpKind::compute || times_[op.match].ready >= Duration::zero()) {
    // Ready, but after another op in the stated order of a resource.
    for (const ResourceId resource : plan_.resources_of(OpId{id})) {
      for (const OpId first : plan_.resources[index(resource)].order) {
        if (times_[index(first)].end < Duration::zero() && index(first) != id)
          return {static_cast<std::uint32_t>(index(first)),
                  static_cast<std::uint32_t>(index(resource))};
      }
    }
  }
  return {op.match};
}

Refusal LaneSweep::deadlock() const {
  const auto stuck =
      std::ranges::find_if(lanes_, [](const LaneState& lane) { return lane.next != lane.end; });
  std::vector<Blocker> path{{stuck->next}};
  for (;;) {
    const Blocker next = blocker_of(path.back().op);
    const auto seen = std::ranges::find(path, next.op, &Blocker::op);
    const bool closed = seen != path.end();
    if (closed) path.erase(path.begin(), seen);
    path.push_back(next);
    if (closed) break;
  }
  std::string cycle = to_text(plan_, OpId{path.front().op});
  std::string orders;  // that the cycle passes through
  for (const Blocker& blocker : std::span{path}.subspan(1)) {
    cycle += ", which waits for " + to_text(plan_, OpId{blocker.op});
    if (blocker.turn_on == kNoResource) continue;
    const std::string& name = plan_.resources[blocker.turn_on].name;
    cycle += fmt::format(" (ahead of it in the stated order of \"{}\")", name);
    if (orders.find('"' + name + '"') == std::string::npos)
      orders += fmt::format(", or the stated order of \"{}\"", name);
  }
  return {fmt::format("schedule {} deadlocks ({}). Change the order of these blocks{}.",
                      plan_.schedule, cycle, orders),
          ExitCode::run_failed};
}

}  // namespace longhaul::sim
