#include "engine/payloads/relay_buffers.hpp"

#include <utility>

#include "base/error.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {
namespace {

bool is_relay_send(const Op& op) {
  return op.kind == OpKind::send && (op.leg == MessageLeg::wan || op.leg == MessageLeg::gather);
}

bool same_piece(const Op& a, const Op& b) {
  return a.block() == b.block() && a.owner == b.owner && a.piece == b.piece;
}

}  // namespace

RelayTable::RelayTable(const Plan& plan, Rank self) {
  const OpRange mine = ops_of_rank(plan, self);
  for (std::uint32_t i = 0; i < mine.count; ++i) {
    const OpId send{mine.first + i};
    if (!is_relay_send(plan.op(send))) continue;
    for (const OpId before : plan.after_of(send)) {
      const Op& recv = plan.op(before);
      if (recv.kind != OpKind::recv || !same_piece(recv, plan.op(send))) continue;
      recv_of_[send] = before;
      send_of_[before] = send;
    }
  }
}

bool RelayBuffers::came_wrong(OpId send) const {
  const auto found = kept_.find(send);
  return found != kept_.end() && found->second.came_wrong;
}

RelayBuffers::Kept RelayBuffers::take(OpId send) {
  const auto found = kept_.find(send);
  LONGHAUL_ASSERT(found != kept_.end(), "op {} has nothing to take on", index(send));
  Kept kept = std::move(found->second);
  kept_.erase(found);
  return kept;
}

}  // namespace longhaul::engine
