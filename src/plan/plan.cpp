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

std::string what(const Op& op) {
  switch (op.kind) {
    case OpKind::compute: return to_text(op.block());
    case OpKind::send:
      return fmt::format("send of {} to rank {}", to_text(op.block()), index(op.peer));
    case OpKind::recv:
      return fmt::format("receive of {} from rank {}", to_text(op.block()), index(op.peer));
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
                     what(plan.op(id)));
}

}  // namespace longhaul
