#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/sweep.hpp"

namespace longhaul {

/// The op that a stuck op waits for. Only called when nothing can move any more.
std::uint32_t Sweep::blocker_of(std::uint32_t id) const {
  const LaneState& lane = lanes_[lane_of(id)];
  if (lane.next != id) return lane.next;  // an op before it on its lane
  for (const OpId cause : plan_.after_of(OpId{id})) {
    if (times_[index(cause)].end < Duration::zero())
      return static_cast<std::uint32_t>(index(cause));
  }
  const Op& op = plan_.ops[id];
  if (op.kind == OpKind::collective) {
    for (const OpId member : plan_.collectives[op.match]) {
      if (times_[index(member)].ready < Duration::zero())
        return static_cast<std::uint32_t>(index(member));
    }
  }
  if (op.kind == OpKind::compute || times_[op.match].ready >= Duration::zero()) {
    // Ready, but behind another op in the stated order of a resource.
    for (const ResourceId resource : plan_.resources_of(OpId{id})) {
      for (const OpId first : plan_.resources[index(resource)].order) {
        if (times_[index(first)].end < Duration::zero() && index(first) != id)
          return static_cast<std::uint32_t>(index(first));
      }
    }
  }
  return op.match;
}

void Sweep::report_deadlock() const {
  const auto stuck =
      std::ranges::find_if(lanes_, [](const LaneState& lane) { return lane.next != lane.end; });
  std::vector<std::uint32_t> path{stuck->next};
  for (;;) {
    const std::uint32_t next = blocker_of(path.back());
    const auto seen = std::ranges::find(path, next);
    if (seen != path.end()) {
      path.erase(path.begin(), seen);
      path.push_back(next);
      break;
    }
    path.push_back(next);
  }
  std::string cycle;
  for (const std::uint32_t id : path)
    cycle += (cycle.empty() ? "" : ", which waits for ") + describe(plan_, OpId{id});
  throw Error{fmt::format("schedule {} deadlocks ({}). Change the order of these blocks.",
                          plan_.schedule, cycle),
              ExitCode::run_failed};
}

}  // namespace longhaul
