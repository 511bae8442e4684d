#include "plan/plan.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace longhaul {
namespace {

/// "F(chunk 3, microbatch 5)", of a message in pieces "piece 1 of replica 0's F(...)", of a
/// collective's "step 3 of all-reduce".
std::string payload_of(const Plan& plan, OpId id) {
  const Op& op = plan.op(id);
  if (is_step(op))
    return fmt::format("step {}{} of {}", op.microbatch,
                       op.pieces > 1 ? fmt::format(" (piece {})", op.piece) : std::string{},
                       to_text(op.collective));
  if (op.leg == MessageLeg::whole) return to_text(op.block());
  const ReplicaId owner = plan.owner_of(id);
  const bool relayed = owner != plan.ranks[index(plan.rank_of(id))].replica;
  return fmt::format("piece {} of {}{}", op.piece,
                     relayed ? fmt::format("replica {}'s ", owner) : std::string{},
                     to_text(op.block()));
}

/// " (wan)"; nothing for a whole message.
std::string leg_suffix(MessageLeg leg) {
  return leg == MessageLeg::whole ? std::string{} : fmt::format(" ({})", to_string(leg));
}

std::string what(const Plan& plan, OpId id) {
  const Op& op = plan.op(id);
  switch (op.kind) {
    case OpKind::compute: {
      const auto& served = plan.extras.served;
      const auto of = std::ranges::lower_bound(served, id, {}, &plan::OpServed::op);
      if (of != served.end() && of->op == id)
        return fmt::format("prefill of request {}", of->request);
      const std::string block = is_optimizer_step(op)
                                    ? fmt::format("optimizer's step of chunk {}", op.chunk)
                                    : to_text(op.block());
      const plan::OperatorStep* const step = plan.operator_of(op);
      if (step == nullptr) return block;
      return fmt::format("{} of {}", plan.operators->names[step->name], block);
    }
    case OpKind::send: {
      const bool relayed = plan.owner_of(id) != plan.ranks[index(plan.rank_of(id))].replica;
      return fmt::format("{} {} to rank {}{}", relayed ? "relaying" : "send of",
                         payload_of(plan, id), index(op.peer), leg_suffix(op.leg));
    }
    case OpKind::recv:
      return fmt::format("receive of {} from rank {}{}", payload_of(plan, id), index(op.peer),
                         leg_suffix(op.leg));
    case OpKind::collective: return fmt::format("{} of chunk {}", to_text(op.collective), op.chunk);
  }
  return "?";
}

}  // namespace

bool Plan::crosses_datacenters(OpId id) const {
  const Op& o = op(id);
  if (o.kind != OpKind::send && o.kind != OpKind::recv) return false;
  return ranks[index(rank_of(id))].datacenter != ranks[index(o.peer)].datacenter;
}

std::string to_text(const Plan& plan, OpId id) {
  const Rank rank = plan.rank_of(id);
  const RankInfo& info = plan.ranks[index(rank)];
  if (info.role != RankRole::training)
    return fmt::format("rank {} ({}, {}): {}", index(rank),
                       plan.datacenters[index(info.datacenter)], to_string(info.role),
                       what(plan, id));
  const std::string replica =
      plan.replicas > 1 ? fmt::format(", replica {}", info.replica) : std::string{};
  return fmt::format("rank {} ({}, stage {}{}): {}", index(rank),
                     plan.datacenters[index(info.datacenter)], info.device, replica,
                     what(plan, id));
}

OpRange ops_of_rank(const Plan& plan, Rank rank) {
  std::size_t first = plan.ops.size();
  std::size_t last = 0;
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != rank || lane.count == 0) continue;
    first = std::min(first, index(lane.first));
    last = std::max(last, index(lane.first) + lane.count);
  }
  if (first >= last) return {};
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last - first)};
}

}  // namespace longhaul
