#include "runtime/engine/verify.hpp"

#include <algorithm>

namespace longhaul {
namespace {

bool is_in_order(const Plan& plan, const Lane& lane, OpId id, const OpTimes& times) {
  const std::size_t at = index(id);
  if (times[at].start > times[at].end) return false;
  if (id != lane.first) {
    const bool block = plan.op(id).kind == OpKind::compute;
    if (times[at].start < (block ? times[at - 1].end : times[at - 1].start)) return false;
  }
  return std::ranges::all_of(
      plan.after_of(id), [&](OpId before) { return times[index(before)].end <= times[at].start; });
}

}  // namespace

Checks verify_order(const Plan& plan, Rank rank, const OpTimes& times) {
  Checks checks;
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != rank) continue;
    for (std::uint32_t i = 0; i < lane.count; ++i) {
      const OpId id{static_cast<std::uint32_t>(index(lane.first)) + i};
      if (!is_in_order(plan, lane, id, times)) {
        ++checks.out_of_order;
      } else if (plan.op(id).kind == OpKind::compute) {
        ++checks.blocks;
      }
    }
  }
  return checks;
}

Checks& Checks::operator+=(const Checks& other) {
  messages += other.messages;
  blocks += other.blocks;
  lost += other.lost;
  mixed_up += other.mixed_up;
  corrupted += other.corrupted;
  out_of_order += other.out_of_order;
  unclaimed += other.unclaimed;
  return *this;
}

LeaseCost& LeaseCost::operator+=(const LeaseCost& other) {
  leases += other.leases;
  total += other.total;
  longest = std::max(longest, other.longest);
  return *this;
}

}  // namespace longhaul
