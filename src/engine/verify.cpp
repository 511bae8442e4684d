#include "engine/verify.hpp"

#include <algorithm>

namespace longhaul::engine {
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

/// The block must wait for all pieces of every message that it waits for.
bool waits_for_whole_messages(const Plan& plan, OpId id) {
  std::size_t pieces = 0, of_one = 0;
  for (const OpId before : plan.after_of(id)) {
    const Op& op = plan.op(before);
    if (op.kind != OpKind::recv || op.pieces == 1) continue;
    ++pieces;
    of_one = op.pieces;
  }
  return of_one == 0 || pieces % of_one == 0;
}

}  // namespace

Checks verify_order(const Plan& plan, Rank rank, const OpTimes& times) {
  Checks checks;
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != rank) continue;
    for (std::uint32_t i = 0; i < lane.count; ++i) {
      const OpId id{static_cast<std::uint32_t>(index(lane.first)) + i};
      const bool block = plan.op(id).kind == OpKind::compute;
      if (!is_in_order(plan, lane, id, times) || (block && !waits_for_whole_messages(plan, id))) {
        ++checks.out_of_order;
      } else if (block) {
        ++checks.blocks;
      }
    }
  }
  return checks;
}

Checks& Checks::operator+=(const Checks& other) {
  messages += other.messages;
  for (std::size_t leg = 0; leg < of_leg.size(); ++leg) of_leg[leg] += other.of_leg[leg];
  relayed += other.relayed;
  relayed_bytes += other.relayed_bytes;
  blocks += other.blocks;
  lost += other.lost;
  mixed_up += other.mixed_up;
  corrupted += other.corrupted;
  out_of_order += other.out_of_order;
  unclaimed += other.unclaimed;
  wrong_tensors += other.wrong_tensors;
  return *this;
}

void Lateness::add(Duration late) {
  late = std::max(late, Duration::zero());
  ++blocks;
  total += late;
  longest = std::max(longest, late);
}

Lateness& Lateness::operator+=(const Lateness& other) {
  blocks += other.blocks;
  total += other.total;
  longest = std::max(longest, other.longest);
  return *this;
}

void LeaseCost::add(Duration late) {
  ++leases;
  total += std::max(late, Duration::zero());
  longest = std::max(longest, late);
}

void LeaseCost::add_words(Duration on_the_way) {
  ++by_words;
  words_total += on_the_way;
  words_longest = std::max(words_longest, on_the_way);
}

LeaseCost& LeaseCost::operator+=(const LeaseCost& other) {
  leases += other.leases;
  total += other.total;
  longest = std::max(longest, other.longest);
  by_words += other.by_words;
  words_total += other.words_total;
  words_longest = std::max(words_longest, other.words_longest);
  return *this;
}

}  // namespace longhaul::engine
