#include "plan/plan.hpp"

#include <fmt/format.h>

namespace longhaul {
namespace {

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather: return "all-gather";
    case CollectiveKind::reduce_scatter: return "reduce-scatter";
    case CollectiveKind::all_reduce: return "all-reduce";
  }
  return "?";
}

/// "F(chunk 3, microbatch 5)", of a message in pieces "piece 1 of replica 0's F(...)".
std::string payload_of(const Plan& plan, OpId id) {
  const Op& op = plan.op(id);
  if (op.leg == MessageLeg::whole) return to_text(op.block());
  const ReplicaId owner = plan.owner_of(id);
  const bool relayed = owner != plan.ranks[index(plan.rank_of(id))].replica;
  return fmt::format("piece {} of {}{}", op.piece,
                     relayed ? fmt::format("replica {}'s ", owner) : std::string{},
                     to_text(op.block()));
}

const char* way_of(MessageLeg leg) {
  switch (leg) {
    case MessageLeg::whole: return "";
    case MessageLeg::scatter: return " (scatter)";
    case MessageLeg::wan: return " (wan)";
    case MessageLeg::gather: return " (gather)";
  }
  return "?";
}

std::string what(const Plan& plan, OpId id) {
  const Op& op = plan.op(id);
  switch (op.kind) {
    case OpKind::compute: return to_text(op.block());
    case OpKind::send: {
      const bool relayed = plan.owner_of(id) != plan.ranks[index(plan.rank_of(id))].replica;
      return fmt::format("{} {} to rank {}{}", relayed ? "relaying" : "send of",
                         payload_of(plan, id), index(op.peer), way_of(op.leg));
    }
    case OpKind::recv:
      return fmt::format("receive of {} from rank {}{}", payload_of(plan, id), index(op.peer),
                         way_of(op.leg));
    case OpKind::collective: return fmt::format("{} of chunk {}", name_of(op.collective), op.chunk);
  }
  return "?";
}

}  // namespace

bool Plan::crosses_datacenters(OpId id) const {
  const Op& o = op(id);
  if (o.kind != OpKind::send && o.kind != OpKind::recv) return false;
  return ranks[index(rank_of(id))].datacenter != ranks[index(o.peer)].datacenter;
}

std::string describe(const Plan& plan, OpId id) {
  const Rank rank = plan.rank_of(id);
  const RankInfo& info = plan.ranks[index(rank)];
  const std::string replica =
      plan.replicas > 1 ? fmt::format(", replica {}", info.replica) : std::string{};
  return fmt::format("rank {} ({}, stage {}{}): {}", index(rank),
                     plan.datacenters[index(info.datacenter)], info.device, replica,
                     what(plan, id));
}

}  // namespace longhaul
