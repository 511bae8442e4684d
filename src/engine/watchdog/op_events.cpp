#include "engine/watchdog/op_events.hpp"

#include <algorithm>
#include <optional>

namespace longhaul::engine {
namespace {

class Trail {
public:
  Trail(const Plan& plan, const OpEvents& events, const comm::HostRanks& host_ranks)
      : plan_{plan}, events_{events}, host_ranks_{host_ranks} {}

  /// The op that this one waits for; none: `why` says what is the matter with itself.
  [[nodiscard]] std::optional<OpId> before(OpId id, const char*& why) const {
    if (const auto input = open_input(id)) return input;
    switch (plan_.op(id).kind) {
      case OpKind::recv: return before_recv(id, why);
      case OpKind::send: return before_send(id, why);
      case OpKind::compute: return before_block(id, why);
      case OpKind::collective: why = "not all members have come"; break;
    }
    return std::nullopt;
  }

private:
  [[nodiscard]] bool has(OpId id, comm::OpEvent event) const { return events_.of(id) >= event; }
  /// Of other hosts' ops only what they were granted here is known.
  [[nodiscard]] bool is_here(OpId id) const { return host_ranks_.is_local(plan_.rank_of(id)); }

  [[nodiscard]] std::optional<OpId> open_input(OpId id) const {
    for (const OpId before : plan_.after_of(id))
      if (!has(before, comm::OpEvent::ended)) return before;
    return std::nullopt;
  }
  /// The op before it on its lane, where that has not come as far as it must.
  [[nodiscard]] std::optional<OpId> open_in_front(OpId id, comm::OpEvent must) const {
    if (id == plan_.lane_of(id).first) return std::nullopt;
    const OpId front{static_cast<std::uint32_t>(index(id)) - 1};
    return has(front, must) ? std::nullopt : std::optional{front};
  }
  [[nodiscard]] std::optional<OpId> before_recv(OpId id, const char*& why) const {
    const OpId send{plan_.op(id).match};
    if (!has(id, comm::OpEvent::posted)) {
      if (const auto front = open_in_front(id, comm::OpEvent::ended)) return front;
      why = "not posted";
    } else if (!is_here(send) || !has(send, comm::OpEvent::started)) {
      return send;
    } else {
      why = has(id, comm::OpEvent::started) ? "on its way" : "sent, and never received";
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<OpId> before_send(OpId id, const char*& why) const {
    const OpId recv{plan_.op(id).match};
    if (has(id, comm::OpEvent::started)) {
      if (!has(recv, comm::OpEvent::started)) return recv;
      why = "on its way";
      return std::nullopt;
    }
    if (const auto front = open_in_front(id, comm::OpEvent::started)) return front;
    if (plan_.op(recv).after_count > 0 && !has(recv, comm::OpEvent::posted)) return recv;
    if (const auto other = holder(id)) return other;
    why = has(id, comm::OpEvent::posted) ? "has asked for its link, which another host leases"
                                         : "ready, and not started";
    return std::nullopt;
  }
  /// A send under way that holds something of what `id` needs.
  [[nodiscard]] std::optional<OpId> holder(OpId id) const {
    const auto needed = plan_.resources_of(id);
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      const OpId other{static_cast<std::uint32_t>(i)};
      if (plan_.op(other).kind != OpKind::send || events_.of(other) != comm::OpEvent::started)
        continue;
      const auto held = plan_.resources_of(other);
      if (std::ranges::find_first_of(held, needed) != held.end()) return other;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<OpId> before_block(OpId id, const char*& why) const {
    if (has(id, comm::OpEvent::started)) {
      why = "still runs";
      return std::nullopt;
    }
    why = "has not started";
    return open_in_front(id, comm::OpEvent::ended);
  }

  const Plan& plan_;
  const OpEvents& events_;
  const comm::HostRanks& host_ranks_;
};

}  // namespace

HeldUp find_held_up(const Plan& plan, const OpEvents& events, const comm::HostRanks& host_ranks,
                    OpId waits) {
  HeldUp found{waits, ""};
  const Trail trail{plan, events, host_ranks};
  // A chain longer than the plan would be a circle.
  for (std::size_t step = 0; step < plan.ops.size(); ++step) {
    if (!host_ranks.is_local(plan.rank_of(found.op))) return {found.op, "on another host"};
    const auto before = trail.before(found.op, found.why);
    if (!before) break;
    found.op = *before;
  }
  return found;
}

}  // namespace longhaul::engine
